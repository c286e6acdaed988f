// Tests of FromContext, and of the allocations of an admitted request.

package tests

import (
	"context"
	"math"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

// TestFromContextAfterTheHandler: a verdict that was read in time stays; any other serves other requests.
func TestFromContextAfterTheHandler(t *testing.T) {
	var asked, silent context.Context
	h := newMiddleware(t, newStill(t), nil, byIP("p", hourly)).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if asked == nil {
			asked = r.Context()
			ratelimit.FromContext(asked)
			return
		}
		silent = r.Context()
	}))
	for range 10 {
		record(h, from("192.0.2.1"))
	}
	if v, found := ratelimit.FromContext(asked); !found || v.Policies[0].Decision.Remaining != 9 {
		t.Errorf("asked in time: got %+v, %v, want the first request's", v, found)
	}
	if v, found := ratelimit.FromContext(silent); found {
		t.Errorf("asked late: got %+v, want none", v)
	}
}

// TestFromContextWhileHandlersReturn: goroutines that outlive their handlers find the verdict of their own request, or none.
func TestFromContextWhileHandlersReturn(t *testing.T) {
	p := byIP("p", algorithms.TokenBucket(1e9, time.Hour))
	p.Cost = func(r *http.Request) int64 { return r.ContentLength } // tells the requests apart
	var askers sync.WaitGroup
	h := newMiddleware(t, newStill(t), nil, p).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, want := r.Context(), r.ContentLength
		askers.Go(func() {
			for range 10 {
				if v, found := ratelimit.FromContext(ctx); found && v.Policies[0].Decision.Receipt.Units() != want {
					t.Errorf("got the verdict %+v, want the verdict on a request of %d units", v, want)
				}
			}
		})
	}))
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for j := range 500 {
				r := from("192.0.2.1")
				r.ContentLength = int64(1 + 500*i + j)
				record(h, r)
			}
		})
	}
	clients.Wait()
	askers.Wait()
}

// TestAdmittedRequestCosts: the allocations for a handler that does not read its verdict.
func TestAdmittedRequestCosts(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, dialect := range []headers.Dialect{headers.Draft, headers.XRateLimit, headers.Draft | headers.SeparateFields} {
		h := newMiddleware(t, newMemory(t), &ratelimit.Options{Headers: dialect}, byIP("ip", algorithms.TokenBucket(1_000_000, time.Second))).Handler(ok)
		w, r := &sink{h: make(http.Header)}, from("192.0.2.1")
		const n = 2_000
		allocations, bytes := uint64(math.MaxUint64), uint64(math.MaxUint64)
		for range 5 { // the least, because other goroutines allocate, too
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
			runtime.ReadMemStats(&after)
			allocations = min(allocations, (after.Mallocs-before.Mallocs)/n)
			bytes = min(bytes, (after.TotalAlloc-before.TotalAlloc)/n)
		}
		if allocations > 3 || bytes > 450 {
			t.Errorf("%v: got %d allocations of %d bytes, want at most 3 of 450", dialect, allocations, bytes)
		}
	}
}
