// Tests of the figures of round trips, and of what Stats say of an outage.

package shared

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestRoundTrips: each bucket counts the round trips up to its bound.
func TestRoundTrips(t *testing.T) {
	var r roundTrips
	for _, took := range []time.Duration{time.Microsecond, 250 * time.Microsecond, 251 * time.Microsecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Minute} {
		r.add(took)
	}
	var s algorithms.Stats
	r.addStats(&s)
	for bound, want := range map[time.Duration]uint64{250 * time.Microsecond: 2, 500 * time.Microsecond: 3, 25 * time.Millisecond: 3, 50 * time.Millisecond: 4, 100 * time.Millisecond: 5, time.Second: 5} {
		if got := s.Redis.RoundTrips.Within[bound]; got != want {
			t.Errorf("within %v: got %d, want %d", bound, got, want)
		}
	}
	if s.Redis.RoundTrips.Count != 6 || s.Redis.Took != time.Minute || s.Redis.RoundTrips.Sum < time.Minute || s.Redis.Answered.IsZero() {
		t.Errorf("got %+v, want 6 round trips, the last of a minute", s.Redis)
	}
}

// TestLateRoundTrips: replies that come after the deadline count. Redis pauses only while it decides: with an open circuit nothing
// is sent. Several callers ask, because a lone caller does not wait for its late reply.
func TestLateRoundTrips(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := must(t, server.Client(), &Options{Deadline: 20 * time.Millisecond})
	pause := server.Client()
	ask := func() algorithms.Source {
		checks := []algorithms.Check{{Policy: "p", Key: "k", Limit: algorithms.TokenBucket(1_000_000, time.Second), Cost: 1}}
		_ = l.Allow(t.Context(), checks) // it may fail
		return checks[0].Decision.Source
	}
	redistest.Until(t, "a late reply counts", func() bool {
		if ask() == algorithms.Shared {
			do(t, pause, "client", "pause", "60", "all")
			var callers sync.WaitGroup
			for range 16 {
				callers.Go(func() { ask() })
			}
			callers.Wait()
		}
		trips := l.Stats().Redis.RoundTrips
		return trips.Count > trips.Within[25*time.Millisecond]
	})
}

// TestCauseOfAnOutage: Stats have the reason, the text, and what this instance admits meanwhile.
func TestCauseOfAnOutage(t *testing.T) {
	t.Parallel()
	l := must(t, redistest.Script(nil, redistest.Fail(errors.New("down"))), &Options{Deadline: 10 * time.Millisecond, Share: 30})
	if s := l.Stats(); s.Fallback.Reason != "" || s.Fallback.Share != "30 %" || s.Redis.Deadline != 10*time.Millisecond {
		t.Errorf("got %+v before the outage, want no reason, and the share of 30 %%", s.Fallback)
	}
	redistest.Until(t, "the circuit opens", func() bool {
		_ = l.Allow(t.Context(), []algorithms.Check{{Policy: "p", Key: "k", Limit: algorithms.TokenBucket(10, time.Second), Cost: 1}}) // it is decided locally
		return l.Stats().Fallback.Open == 1
	})
	if s := l.Stats(); s.Fallback.Reason != "unavailable" || !strings.Contains(s.Fallback.Error, "down") {
		t.Errorf("got the reason %q and %q, want unavailable: down", s.Fallback.Reason, s.Fallback.Error)
	}
}
