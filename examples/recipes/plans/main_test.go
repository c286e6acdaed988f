package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func send(h http.Handler, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/charges", nil)
	r.Header.Set("X-API-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, err := limits(algorithms.NewMemory(nil), nil, findAccount)
		if err != nil {
			t.Fatal(err)
		}
		h := limited.Handler(http.NotFoundHandler())
		for i := range 60 {
			if w := send(h, "sk_live_2"); w.Code == 429 {
				t.Errorf("request %d: got status %d", i, w.Code)
			}
		}
		w := send(h, "sk_live_2")
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("got %d and Retry-After %q, want 429 and 1", w.Code, w.Header().Get("Retry-After"))
		}
		if w := send(h, "sk_live_1"); w.Code != 404 || w.Header().Get("RateLimit-Policy") == "" {
			t.Errorf("got status %d of the larger plan", w.Code)
		}
		// The denials have charged no limit: the next second admits one request, and the month has lost 61 units.
		time.Sleep(time.Second)
		if w := send(h, "sk_live_2"); w.Code != 404 {
			t.Errorf("got status %d after the wait", w.Code)
		}
		month := []algorithms.Check{{Policy: "month", Key: "usr=globex", Limit: algorithms.PerMonth(10_000, nil)}}
		if _, memory := limited.Limiter(); memory.Allow(t.Context(), month) != nil || month[0].Decision.Remaining != 10_000-61 {
			t.Errorf("got %+v left of the month, want %d", month[0].Decision, 10_000-61)
		}
	})
}
