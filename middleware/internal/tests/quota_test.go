package tests

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestHeadersWithoutWindow: days and months, whose lengths differ, have no w, but a t. Concurrent requests have
// neither.
func TestHeadersWithoutWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		limit  algorithms.Limit
		policy string
		steps  []step
	}{
		"day": {algorithms.PerDay(100, zone(t, "Asia/Kolkata")), "q=100", []step{ // the first one ends at 18:30 UTC
			{0, 1, 1, 200, "r=99;t=85536", "", "100 99 66600"},
			{18 * time.Hour, 1, 98, 200, "r=1;t=1800", "", "100 1 1800"},
			{time.Hour, 1, 50, 200, "r=50;t=84600", "", "100 50 84600"},
		}},
		"concurrent": {algorithms.Concurrent(3, time.Minute), `q=3;qu="concurrent-requests"`, []step{ // no unit returns, and all handlers have returned at once
			{0, 1, 1, 200, "r=2", "", "3 2 60"},
			{10 * time.Second, 1, 2, 200, "r=0", "", "3 0 60"},
			{10 * time.Second, 1, 1, 429, "r=0", "1", "3 0 1"},
		}},
		"month": {algorithms.PerMonth(2, nil), "q=2", []step{
			{0, 1, 1, 200, "r=1;t=2678400", "", "2 1 2678400"},
			{31 * 24 * time.Hour, 1, 1, 200, "r=1;t=2505600", "", "2 1 2505600"}, // 29 days
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runHeaders(t, tt.limit, tt.policy, tt.steps, headers.Draft|headers.XRateLimit)
			})
		})
	}
}

// TestCalendarJitterOfSkewedClocks: instances send a client the same instant, although its day ends at noon UTC, as far
// as possible from the days of the epoch.
func TestCalendarJitterOfSkewedClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.PerDay(1, zone(t, "Pacific/Majuro"))
		time.Sleep(time.Hour)
		distinct := map[int]bool{}
		for i := range 20 {
			client := func() *http.Request { return from(fmt.Sprintf("192.0.2.%d", i)) }
			var said []int
			for _, skew := range []time.Duration{-2 * ms, 2 * ms} {
				memory := newMemoryWith(t, algorithms.MemoryOptions{Now: func() time.Time { return time.Now().Add(skew) }})
				h := newMiddleware(t, memory, &ratelimit.Options{}, byIP("p", limit)).Handler(ok)
				record(h, client())
				said = append(said, retryAfter(t, record(h, client()).Header()))
			}
			if d := said[0] - said[1]; d < -1 || d > 1 || said[0] < 11*3600 {
				t.Errorf("got %v of clocks that differ by 4 ms, want the same after noon, within a second", said)
			}
			distinct[said[0]] = true
		}
		if len(distinct) < 5 {
			t.Errorf("got %v, want waits that are spread", distinct)
		}
	})
}
