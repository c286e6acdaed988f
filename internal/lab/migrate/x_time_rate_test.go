package migrate

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/algorithms"
)

func TestXTimeRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := compare(t, xTimeRateBefore(order), xTimeRateAfter(order), nil, []step{
			{send: 20},
			{rows: []row{
				{"All clients share the limit, so no client has sent too much: penstock answers 503, with a `Retry-After`", "status of request 21", []string{"status"}},
			}},
			{before: pause(99 * time.Millisecond), rows: []row{{"", "", []string{"status"}}}},
			{before: pause(time.Millisecond)},
			{before: pause(time.Hour), send: 20},
		})
		wantTable(t, "x/time/rate", lines)
	})
}

// TestXTimeRateWait: requests leave at the same instants, and a wait that the deadline does not allow fails at once.
func TestXTimeRateWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, memory := rate.NewLimiter(rate.Every(100*time.Millisecond), 20), algorithms.NewMemory(nil)
		before := departures(t, func(ctx context.Context, send func()) error { return xTimeRateWaitBefore(ctx, limiter, send) })
		after := departures(t, func(ctx context.Context, send func()) error { return xTimeRateWaitAfter(ctx, memory, send) })
		if !slices.Equal(before, after) || after[49] != 3*time.Second {
			t.Errorf("got departures at %v, and with x/time/rate at %v", after, before)
		}
	})
}

func departures(t *testing.T, wait func(context.Context, func()) error) (all []time.Duration) {
	t.Helper()
	start := time.Now()
	send := func() { all = append(all, time.Since(start)) }
	for range 50 {
		if err := wait(t.Context(), send); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 99*time.Millisecond)
	defer cancel()
	if err := wait(ctx, send); err == nil || time.Since(start) != all[49] {
		t.Errorf("got error %v after %v, want one at once", err, time.Since(start))
	}
	return all
}
