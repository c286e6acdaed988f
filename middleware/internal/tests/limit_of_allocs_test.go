// Tests of the cost of limits that requests bring.

package tests

import (
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// byRow is a policy whose limits come from requests, as from a customer's row.
func byRow(l algorithms.Limit) ratelimit.Policy {
	p := byIP("row", l)
	p.LimitOf = func(r *http.Request) (algorithms.Limit, error) {
		n, err := strconv.ParseInt(r.Header.Get("Row"), 10, 64)
		return algorithms.TokenBucket(1_000+n, time.Minute), err
	}
	return p
}

// TestLimitOfAllocations: each limit of a hundred thousand costs at most one allocation more than a fixed limit, and leaves
// nothing behind.
func TestLimitOfAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	memory := newStill(t)
	fixed := newMiddleware(t, memory, nil, byIP("row", algorithms.TokenBucket(1e9, time.Minute))).Handler(ok)
	brought := newMiddleware(t, memory, nil, byRow(algorithms.TokenBucket(1e9, time.Minute))).Handler(ok)
	w, r, n := &sink{h: make(http.Header)}, with(from("192.0.2.1"), "Row", "0"), 0
	row := r.Header["Row"]
	ask := func(h http.Handler) func() {
		return func() {
			n++
			row[0] = strconv.Itoa(n)
			clear(w.h)
			h.ServeHTTP(w, r)
		}
	}
	of := testing.AllocsPerRun(1000, ask(fixed))
	if got := testing.AllocsPerRun(1000, ask(brought)); got > of+1 {
		t.Errorf("got %v allocations for each limit, want at most one more than %v", got, of)
	}

	const many = 100_000 // so that the bound is less than a byte for each
	before := heap()
	for range many {
		ask(brought)()
	}
	if grown := int64(heap()) - int64(before); grown > 64<<10 {
		t.Errorf("got %d bytes more after %d limits, want a flat heap", grown, many)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // of what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
