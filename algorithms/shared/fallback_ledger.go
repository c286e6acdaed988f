// The ledger: units that the memory has admitted and that the primary has
// certainly not charged, until a hand-back.
//
// A debt counts as the primary would have counted: units that have refilled or
// rolled out of the window are not owed any more. A hand-back charges the other
// units as of now.
//
// Windows forget at instants of the whole limit, so their debts are states of
// the whole limit. Each charge adds to them.
//
// Buckets drain at the rate of this process's share, because the primary's own
// units drain at the same time, and they drain first. So the debt of a bucket
// is the state of the share in the memory, as the last charge left it: the
// receipt of a take has that {T, N, F}. The state may hold more units than were
// charged here, because it began with the primary's (preload). Then only the
// charged units are owed.
//
// A Force has no receipt; its state follows from ResetAfter. A bucket that is
// empty again D µs after the charge holds n units. The first n - 1 of them
// drain before D: n = floor((D - 1) · r / w) + 1. A state of n units at T is
// empty at T + e(n), where e(n) is the first whole µs at which n units have
// drained, so T = now + D - e(n). That is exact except for fractions of a µs.
// The code subtracts 1 µs more, so any later receipt is newer.
//
// Example: 60 per minute, so r = 1 and w = 1 000 000 µs. A Force leaves
// ResetAfter = 2.5 s. Then n = floor(2 499 999 / 1 000 000) + 1 = 3 and e(3) =
// 3 s, so T = now - 0.5 s: three units were in use half a second ago, and the
// first of them drains in half a second.

package shared

import (
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	// maxOwed bounds the keys of a ledger. Units of further keys, and of keys
	// longer than maxKept, are not handed back.
	maxOwed = 100_000

	// roomSamples is how many entries dropSome looks at.
	roomSamples = 4
)

// A ledger holds the debts of all keys.
type ledger struct {
	sending atomic.Int64 // keys that were popped and are on their way to the primary

	mu   sync.Mutex // guards keys
	keys map[step.Key]*debt
}

// A debt is the units that one key owes.
type debt struct {
	key     step.Key
	whole   step.Limit // as the primary has it
	counts  step.Limit // the limit that state counts under
	charged int64      // units; the state of a bucket may hold more
	state   step.State
}

func newLedger() *ledger { return &ledger{keys: make(map[step.Key]*debt)} }

// record notes a take or a force that the memory has answered as local.
func (l *ledger) record(it *item, local *algorithms.Check, now int64) {
	charged := it.decision.Receipt.Units() > 0 || it.Op == step.Force && it.decision.Source == algorithms.Local
	if it.Cost == 0 || !it.Limit.Row.Owed || !charged || len(it.Key.Text) > maxKept {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.keys[it.Key]
	if ok {
		d.bringTo(now)
	} else {
		dropSome(l.keys, func(d *debt) bool {
			if len(l.keys) < maxOwed { // a debt that is brought to now takes no earlier charge
				return false
			}
			d.bringTo(now)
			return d.state.Empty()
		})
		if len(l.keys) >= maxOwed {
			return
		}
		d = &debt{key: it.Key.Clone()}
		l.keys[d.key] = d
	}
	d.charged += it.Cost
	d.whole = it.Limit
	if d.whole.Row.Refill != step.Continuously {
		d.counts = d.whole
		d.state = d.counts.Force(d.counts.At(d.state, now), now, it.Cost)
		return
	}
	d.counts = *local.Limit.Step()
	s := bucketState(it, local, now)
	newer := s.T > d.state.T || s.T == d.state.T && s.N > d.state.N // otherwise a later charge came first
	if newer || it.Op == step.Force {
		d.state = s
	}
}

// bucketState returns the state of a bucket that the memory has charged at now:
// see the head of this file.
func bucketState(it *item, local *algorithms.Check, now int64) step.State {
	if it.Op != step.Force {
		r := it.decision.Receipt.Step()
		return step.State{T: r.T, N: r.N, F: r.F}
	}
	l, left := local.Limit.Step(), it.decision.ResetAfter.Microseconds()
	n, _ := step.MulDiv(max(0, left-1), l.R, l.W)
	n = min(n, l.Cap-1) + 1
	return step.State{T: now + left - l.FullAt(step.State{N: n}) - 1, N: n}
}

// unrecord notes that the units of a Return are not owed any more.
func (l *ledger) unrecord(it *item, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.keys[it.Key]; ok {
		d.bringTo(now)
		d.charged = max(0, d.charged-it.Cost)
		d.state = d.counts.Granted(d.state, it.Cost)
	}
}

// forget drops the debt of an item's key.
func (l *ledger) forget(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keys, it.Key)
}

// dropSome looks at a few entries of a bounded map, and drops entries that are
// over.
func dropSome[K comparable, V any](entries map[K]V, over func(V) bool) {
	looked := 0
	for key, entry := range entries { // begins anywhere
		if over(entry) {
			delete(entries, key)
		}
		if looked++; looked == roomSamples {
			break
		}
	}
}

// pop removes up to limit keys and returns their debts. They count as sending, and
// so as owed, until the caller has sent them.
func (l *ledger) pop(limit int) (debts []*debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, d := range l.keys {
		if len(debts) == limit {
			break
		}
		delete(l.keys, key)
		debts = append(debts, d)
	}
	l.sending.Add(int64(len(debts)))
	return debts
}

// restore puts back a debt that the primary has not received.
func (l *ledger) restore(d *debt, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if newer, ok := l.keys[d.key]; ok {
		d.merge(newer, now)
	}
	l.keys[d.key] = d
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys) + int(l.sending.Load())
}

// merge adds the debt that the key has made since d was popped. Windows count
// it as of now, which is a moment late. The newer state of a bucket holds all
// units.
func (d *debt) merge(newer *debt, now int64) {
	d.bringTo(now)
	d.charged += newer.charged
	d.whole, d.counts = newer.whole, newer.counts
	if d.counts.Row.Refill == step.Continuously {
		d.state = newer.state
		return
	}
	d.state = d.counts.Charge(d.state, now, newer.charged)
}

// bringTo forgets the units that do not count any more at now.
func (d *debt) bringTo(now int64) {
	d.state = d.counts.At(d.state, now)
	d.charged = min(d.charged, d.counts.Used(d.state))
}

// call returns the backfill of the units that are owed at now, and their
// number; nil if no unit is owed.
func (d *debt) call(now int64) (c *call, units int64) {
	d.bringTo(now)
	if units = d.charged; units == 0 {
		return nil, 0
	}
	c = callOf(1)
	it := &c.items[0]
	it.Key, it.Limit, it.Op, it.Cost = d.key, d.whole, step.Backfill, units
	_ = c.add(it) // a settlement alone is a valid call
	return c, units
}
