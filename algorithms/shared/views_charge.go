// Charges of units that were admitted ahead. No caller waits for them.
//
// One charge per key is under way at a time, and units that come meanwhile join the next.
// Charges wait until the end of a span of a few milliseconds, which is the same for all
// keys: so those of many keys share a script, and a hot key costs one check per span. At most
// maxSending charges are on their way to Redis. The others wait for them, and gather meanwhile. So
// callers that take faster than Redis charges make charges larger: they do not wait, and do not fill
// the queue in which charges have a deadline.
//
// Example: 64 callers take 600 000 units a second of 10 000 keys, and Redis makes 200 000 charges a
// second. Each key has a charge that gathers for 50 ms, and is of 3 units.
//
// A charge is an ordinary take. If Redis denies it, the units are forced, so an overdraft is
// debt. Charges go through the fallback: in an outage, its memory and its ledger count them,
// also where a take would be denied. Then the key asks, until Redis has answered.
//
// A Return of units that are not sent yet takes them off their charge. Any other Return waits until the
// units so far have been charged, because it could overtake a charge, and find nothing to return. If
// units join meanwhile, it may wait for the next charge, too.

package shared

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	gatherFor  = 5 * time.Millisecond // the span in which charges gather
	maxSending = 1024                 // charges on their way to Redis
)

// charge charges the pending units of a key, until there are none.
func (v *views) charge(sh *viewShard, w *view) {
	defer v.charges.Add(-1)
	for more := true; more; {
		time.Sleep(gatherFor - v.now()%gatherFor)
		v.sending <- struct{}{}
		sh.mu.Lock()
		units, limit, landed := w.pending, w.limit.Value(), w.landed
		w.pending, w.landed = 0, nil
		sh.mu.Unlock()
		if units > 0 && !v.chargeUnits(sh, w, &limit, step.Take, units) {
			v.overdrawn.Add(uint64(units))
			v.chargeUnits(sh, w, &limit, step.Force, units)
		}
		<-v.sending
		wake(landed)
		sh.mu.Lock()
		if more = w.pending > 0; !more {
			wake(w.landed) // by Returns that came during the charge
			w.landed = nil
		}
		w.flies = more
		sh.mu.Unlock()
	}
}

// wake wakes the Returns that wait for a charge, if there are any.
func wake(landed chan struct{}) {
	if landed != nil {
		close(landed)
	}
}

// cancelOrWait makes Returns of a call by taking their units off charges that are not sent yet. For the others it
// waits until the units so far have been charged, at most until the context ends. Each charge ends, whatever Redis
// does: the layers below keep their deadline.
func (v *views) cancelOrWait(ctx context.Context, c *call) {
	now := v.offset.Load() + v.now().Microseconds()
	var charges []chan struct{}
	for i := range c.items {
		it := &c.items[i]
		if !it.returnsShared() {
			continue
		}
		sh, w := v.locked(it)
		switch {
		case w == nil || !w.flies:
		case w.pending >= it.Cost && it.undoes(now):
			w.pending, w.unacked = w.pending-it.Cost, w.unacked-it.Cost
			it.madeHere()
		default:
			if w.landed == nil {
				w.landed = make(chan struct{})
			}
			charges = append(charges, w.landed)
		}
		sh.mu.Unlock()
	}
	for _, landed := range charges {
		select {
		case <-landed:
		case <-ctx.Done():
			return
		}
	}
}

// chargeUnits charges units of a key, and reports whether that is acknowledged: a Take may be denied.
func (v *views) chargeUnits(sh *viewShard, w *view, l *step.Limit, op step.Op, units int64) bool {
	c := lone(step.Item{Key: w.key, Limit: *l, Op: op, Cost: units})
	defer c.free()
	c.ahead = true
	it := &c.items[0]
	asked := v.now()
	err := v.next.allow(context.Background(), c)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	denied := op == step.Take && err == nil && !it.decision.Allowed
	if !denied {
		w.unacked -= units
	}
	if err == nil && it.decision.Source == algorithms.Shared && !c.known {
		v.learn(sh, it, asked, v.now())
	} else {
		w.troubled = true
	}
	return !denied
}

// close waits for the charges under way: at most two deadlines, and a span, for each maxSending of them. Nothing is
// admitted ahead any more.
func (v *views) close() {
	for v.closed.Store(true); v.charges.Load() > 0; {
		time.Sleep(gatherFor)
	}
}
