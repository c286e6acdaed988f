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

// TestCauseOfAnOutage: Stats have the reason, the text, and how many instances share a limit.
func TestCauseOfAnOutage(t *testing.T) {
	t.Parallel()
	l := must(t, redistest.Script(nil, redistest.Fail(errors.New("down"))), &Options{Deadline: 10 * time.Millisecond})
	if s := l.Stats(); s.Fallback.Reason != "" || s.Fallback.Instances != 1 || s.Redis.Deadline != 10*time.Millisecond {
		t.Errorf("got %+v before the outage, want no reason, and one instance", s.Fallback)
	}
	redistest.Until(t, "the circuit opens", func() bool {
		_ = l.Allow(t.Context(), []algorithms.Check{{Policy: "p", Key: "k", Limit: algorithms.TokenBucket(10, time.Second), Cost: 1}}) // it is decided locally
		return l.Stats().Fallback.Open == 1
	})
	if s := l.Stats(); s.Fallback.Reason != "unavailable" || !strings.Contains(s.Fallback.Error, "down") {
		t.Errorf("got the reason %q and %q, want unavailable: down", s.Fallback.Reason, s.Fallback.Error)
	}
}
