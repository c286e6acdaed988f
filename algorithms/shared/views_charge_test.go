// How charges gather.

package shared

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A crowdedLink counts the calls that are on their way at once, all calls, and their units.
type crowdedLink struct {
	layer
	now, most, calls, units atomic.Int64
}

func (l *crowdedLink) allow(ctx context.Context, c *call) error {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	l.calls.Add(1)
	l.units.Add(c.items[0].Cost)
	return l.layer.allow(ctx, c)
}

// TestManyKeysAreAdmittedAhead: callers that take faster than Redis charges do not wait, at most maxSending charges are on
// their way at once, several units join a charge, and each unit is charged.
func TestManyKeysAreAdmittedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, rounds = 4 * maxSending, 8
		limit := algorithms.TokenBucket(1_000, time.Hour)
		v := aheadOf(1, 25, 2*keys, newStateStore(), 1, 4*time.Millisecond)[0]
		link := &crowdedLink{layer: v.next}
		v.next = link
		for range rounds {
			for key := range keys {
				if d, _, waited := v.ask(1, checkOf(fmt.Sprint("usr=", key), limit, 1)); !d.Allowed || waited > 0 {
					t.Fatalf("got %+v after %v, want an admission at once", d, waited)
				}
			}
			time.Sleep(gatherFor)
		}
		v.close()
		if most := link.most.Load(); most > maxSending {
			t.Errorf("got %d charges on their way at once, want %d at most", most, maxSending)
		}
		if calls, units := link.calls.Load(), link.units.Load(); units != keys*rounds || calls > units/2 {
			t.Errorf("got %d units in %d charges, want %d in at most half as many", units, calls, keys*rounds)
		}
	})
}

// TestManyChargesKeepTheSum: Redis stalls while thousands of keys have charges, and later hangs while the limiter closes.
// It charges each admitted unit once, except for those that are lost or unknown.
func TestManyChargesKeepTheSum(t *testing.T) {
	t.Parallel()
	const keys = 4 * maxSending
	server := redistest.Start(t)
	l := must(t, clientOf(t, server.Addr(), nil), &Options{Ahead: 25, Instances: 1})
	limit := algorithms.TokenBucket(1_000, 1_000*time.Hour)
	admitted := int64(0)
	redistest.Until(t, "Redis decides", func() bool {
		d := take(t, l, "usr=0", limit, 1)
		if d.Allowed {
			admitted++
		}
		return d.Source == algorithms.Shared
	})
	takeAll := func() {
		l.views.certain(1)
		for key := range keys {
			if take(t, l, fmt.Sprint("usr=", key), limit, 1).Allowed {
				admitted++
			}
		}
	}
	takeAll()
	server.Stop()
	takeAll()
	redistest.Until(t, "the circuit opens", func() bool { takeAll(); return l.Stats().Fallback.Open > 0 })
	server.Continue()
	redistest.Until(t, "all is charged", func() bool {
		s := l.Stats()
		return s.Fallback.Open == 0 && s.Fallback.Owed == 0 && s.Ahead.Unacknowledged == 0 && l.redis.underWay() == 0
	})
	direct, charged := newRedis(t, server.Client(), nil), int64(0)
	for key := range keys {
		charged += used(t, direct, fmt.Sprint("usr=", key), limit)
	}
	s := l.Stats()
	if least := admitted - int64(s.Fallback.Lost) - s.Fallback.Unknown; charged > admitted || charged < least {
		t.Errorf("got %d units charged, want %d to %d", charged, least, admitted)
	}
	if s.Ahead.Admitted < keys {
		t.Errorf("got %d takes ahead, want %d or more", s.Ahead.Admitted, keys)
	}
	takeAll()
	server.Stop()
	defer server.Continue()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
