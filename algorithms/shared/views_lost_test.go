// Charges of units that were admitted ahead, while the primary is in trouble.

package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A charge that times out counts once, also if this process's share is spent: in the primary, or as unknown units.
func TestChargeThatTimesOutCountsOnce(t *testing.T) {
	limit := algorithms.TokenBucket(100, 9_000*time.Hour)
	spend := map[string]func(w *world){
		"the share has room": func(*world) {},
		"the share is spent": func(w *world) { take(t, w.memory, "usr=1", algorithms.LimitOf(w.fallback.share(limit.Step())), 25) },
		"a view denies": func(w *world) {
			take(t, w.shared.store, "usr=1", limit, 98)
			w.take("usr=1", limit, 50)
			reset := checkOf("usr=1", limit, 0)
			reset.Op = algorithms.Reset
			if err := w.shared.store.Allow(t.Context(), []algorithms.Check{reset}); err != nil {
				t.Fatal(err)
			}
		},
	}
	replies := map[string]struct {
		of      func(w *world, c *call)
		charged int64
		unknown int64
		lost    uint64
	}{
		"none, but executed": {func(w *world, c *call) { w.shared.store.top.(*stateStore).execute(c) }, 4, 4, 0},
		"charged":            {func(w *world, c *call) { w.shared.reply(c, nil) }, 4, 0, 0},
		"not executed":       {func(w *world, c *call) { w.shared.reply(c, errReadonly) }, 0, 0, 4},
	}
	for before, spend := range spend {
		for name, reply := range replies {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, &Options{Ahead: 20, Views: 1_000, Instances: 4})
				w.views.certain(4)
				reply.of(w, hungCharge(t, w, limit, spend))
				w.views.close()
				synctest.Wait() // the fallback acts on the reply
				if got := used(t, w.shared.store, "usr=1", limit); got != reply.charged {
					t.Errorf("%s, the reply: %s: the primary holds %d units, want %d", before, name, got, reply.charged)
				}
				if s := w.stats(); s.Unknown != reply.unknown || s.Lost != reply.lost || w.views.overdrawn.Load() != 0 {
					t.Errorf("%s, the reply: %s: got %+v, want %d unknown, %d lost and none overdrawn", before, name, s, reply.unknown, reply.lost)
				}
			})
		}
	}
}

// hungCharge takes 4 units ahead, and returns their charge, which the primary leaves unanswered. It answers
// all others. Meanwhile is called before the charge is sent.
func hungCharge(t *testing.T, w *world, limit algorithms.Limit, meanwhile func(*world)) *call {
	if d, _, waited := w.views.ask(4, checkOf("usr=1", limit, 4)); !d.Allowed || waited > 0 {
		t.Fatalf("got %+v after %v, want it admitted ahead", d, waited)
	}
	meanwhile(w)
	calls := 0
	w.shared.troubled(func(ctx context.Context) error {
		if calls++; calls > 1 {
			return nil
		}
		return hang(ctx)
	})
	time.Sleep(gatherFor + 2*defaultDeadline)
	synctest.Wait()
	overdue := w.shared.overdueCalls()
	if len(overdue) != 1 {
		t.Fatalf("%d calls are overdue, want the charge", len(overdue))
	}
	return overdue[0]
}
