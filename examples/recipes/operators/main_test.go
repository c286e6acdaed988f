package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/overrides"
)

const token = "a token of the tests"

func TestOperators(t *testing.T) {
	api, operators, err := services(algorithms.NewMemory(nil), overrides.NewMemory(), token)
	if err != nil {
		t.Fatal(err)
	}
	operate := func(method, path, body, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.SetBasicAuth("alice", token)
		r.Header.Set("Content-Type", "application/json")
		return record(operators, r)
	}
	send := func() int { return record(api, httptest.NewRequest(http.MethodGet, "/", nil)).Code }

	if w := operate("GET", "/limits/policies", "", "guess"); w.Code != http.StatusForbidden {
		t.Errorf("a guess: got %d, want 403", w.Code)
	}
	if w := operate("PUT", "/limits/overrides/api?ip=192.0.2.1", `{"limit":"1/1m","for":"1h"}`, token); w.Code != http.StatusNoContent {
		t.Errorf("an override: got %d %s", w.Code, w.Body)
	}
	if got := []int{send(), send()}; got[0] != http.StatusNotFound || got[1] != http.StatusTooManyRequests {
		t.Errorf("got %v, want the handler's 404 and then a denial", got)
	}
	for path, want := range map[string]string{
		"/limits/who?ip=192.0.2.1": "api denies ip=192.0.2.1",
		"/limits/denied":           `"denied": 1`,
		"/limits/overrides":        `"by": "alice"`,
		"/status":                  "Clients denied most often",
	} {
		if w := operate("GET", path, "", token); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
