package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

func TestSoftLimit(t *testing.T) { synctest.Test(t, testSoftLimit) }

func testSoftLimit(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	m := limits(memory, func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: "acme"}, nil })
	h := m.Handler(http.HandlerFunc(serve))
	marked, served := 0, 0
	for range 70 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", "key")
		h.ServeHTTP(w, r)
		if w.Code == 200 {
			served++
		}
		if w.Header().Get("X-Above-Plan") != "" {
			marked++
		}
	}
	if served != 70 || marked != 10 {
		t.Errorf("got %d served and %d marked, want 70 and 10", served, marked)
	}
	left := []algorithms.Check{{Policy: "credits", Key: "usr=acme", Limit: algorithms.PerMonth(1_000, nil)}}
	if err := memory.Allow(t.Context(), left); err != nil || left[0].Decision.Remaining != int64(1_000-marked) {
		t.Errorf("got %+v, error %v, want %d credits left", left[0].Decision, err, 1_000-marked)
	}
}
