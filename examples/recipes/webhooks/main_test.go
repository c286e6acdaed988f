package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestWorkersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, done, began := make(chan string, 22), 0, time.Now()
		for range 22 {
			jobs <- "acme"
		}
		close(jobs)
		if err := work(t.Context(), algorithms.NewMemory(nil), jobs, func(string) { done++ }); err != nil || done != 22 {
			t.Fatalf("got %d jobs and error %v", done, err)
		}
		if took := time.Since(began); took != 2*time.Second { // 2 at once, then one each 100 ms
			t.Errorf("22 jobs took %v, want 2s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		more := make(chan string, 2)
		more <- "acme"
		more <- "acme"
		close(more)
		limiter := algorithms.NewMemory(nil)
		if _, err := algorithms.AllowN(ctx, limiter, "usr=acme", tenPerSecond, 2); err != nil {
			t.Fatal(err)
		}
		if err := work(ctx, limiter, more, func(string) { t.Error("a job ran too early") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want that the deadline is too short", err)
		}
	})
}

func TestWebhooksAreRepeated(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	hooks, err := newClient(algorithms.NewMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := hooks.Post(server.URL, "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != 200 || requests != 2 {
		t.Fatalf("got %v, error %v after %d requests, want 200 after 2", resp, err, requests)
	}
	_ = resp.Body.Close()
}
