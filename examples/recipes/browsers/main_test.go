package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
)

// A script sees a field only if Access-Control-Expose-Headers names it, on denials, too.
func TestBrowsers(t *testing.T) { synctest.Test(t, testBrowsers) }

func testBrowsers(t *testing.T) {
	h, err := newHandler(algorithms.NewMemory(nil), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 61 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Origin", "https://app.example.com")
		h.ServeHTTP(w, r)
		if want := map[bool]int{true: 200, false: 429}[i < 60]; w.Code != want {
			t.Fatalf("request %d: got status %d, want %d", i, w.Code, want)
		}
		exposed := strings.Split(strings.ToLower(w.Header().Get("Access-Control-Expose-Headers")), ", ")
		for _, field := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "Retry-After"} {
			if w.Header().Get(field) != "" && !slices.Contains(exposed, strings.ToLower(field)) {
				t.Errorf("request %d: scripts do not see %s, only %q", i, field, exposed)
			}
		}
		if w.Header().Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("request %d: scripts do not see the answer", i)
		}
	}
	// CORS answers a preflight, so it costs nothing.
	w := httptest.NewRecorder()
	r := httptest.NewRequest("OPTIONS", "/", nil)
	r.Header.Set("Origin", "https://app.example.com")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	if h.ServeHTTP(w, r); w.Code != 204 {
		t.Errorf("got status %d of a preflight, want 204", w.Code)
	}
}
