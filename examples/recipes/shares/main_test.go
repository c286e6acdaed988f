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

func TestShares(t *testing.T) { synctest.Test(t, testShares) }

func testShares(t *testing.T) {
	find := func(_ context.Context, key string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: key}, nil }
	h := limits(algorithms.NewMemory(nil), find).Handler(http.HandlerFunc(serve))
	get := func(tenant string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", tenant)
		h.ServeHTTP(w, r)
		return w.Code
	}
	served := 0
	for range 1_000 {
		if get("greedy") == http.StatusOK {
			served++
		}
	}
	if served < 100 || served > 200 {
		t.Errorf("the greedy tenant: got %d, want the burst", served)
	}
	if got := get("modest"); got != http.StatusOK {
		t.Errorf("the modest tenant: got %d", got)
	}
}
