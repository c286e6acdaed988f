// The ledger: units that the memory has admitted and that the primary has
// certainly not charged, until a hand-back.
//
// A debt counts as the primary would have counted: units that have refilled or
// rolled out of the window are not owed any more. A hand-back charges the other
// units as of now.
//
// A debt is a state, to which each charge adds. Windows forget at instants of the
// whole limit, so their debts are states of the whole limit. Buckets drain at the
// rate of this process's share, because the primary's own units drain at the same
// time, and they drain first.
//
// Example: 60 per minute, 3 instances. The memory admits 6 units at 0 s. The
// share drains one unit every 3 s, so 4 units are owed at 6 s, and none at 18 s.

package shared

import (
	"sync"

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
	mu   sync.Mutex // guards keys and their debts
	keys map[step.Key]*debt
}

// A debt is the units that one key owes.
type debt struct {
	key    step.Key
	whole  step.Limit // as the primary has it
	counts step.Limit // the limit that state counts under
	state  step.State
	forced int64 // units that no receipt of the memory names, also those that have drained since
	after  int64 // µs: it is not sent before

	// rest is what is owed instead if the primary charges the backfill that is on its
	// way; nil if none is. Charges and Returns change both.
	rest *debt
}

// A backfill is a debt on its way to the primary.
type backfill struct {
	debt  *debt
	call  *call
	units int64
}

func newLedger() *ledger { return &ledger{keys: make(map[step.Key]*debt)} }

// record notes units of an item that the memory has charged under a share of its
// limit.
func (l *ledger) record(it *item, share *step.Limit, now int64) {
	counts := it.Limit
	if it.Limit.Row.Refill == step.Continuously {
		counts = *share
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.keys[it.Key]
	if d == nil {
		if len(it.Key.Text) > maxKept || !l.room(now) {
			return
		}
		d = &debt{key: it.Key.Clone(), counts: counts}
		l.keys[d.key] = d
	}
	for ; d != nil; d = d.rest {
		d.bringTo(now) // under the limit that it counted under
		d.whole, d.counts = it.Limit, counts
		d.state = counts.Force(counts.At(d.state, now), now, it.Cost)
		if it.decision.Receipt.Units() == 0 {
			d.forced += it.Cost
		}
	}
}

// room reports whether there is room for another key. It requires mu.
func (l *ledger) room(now int64) bool {
	if len(l.keys) >= maxOwed {
		dropSome(l.keys, func(d *debt) bool { return d.bringTo(now) == 0 })
	}
	return len(l.keys) < maxOwed
}

// unrecord notes that the units of a Return are not owed any more.
func (l *ledger) unrecord(it *item, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := l.keys[it.Key]; d != nil; d = d.rest {
		d.bringTo(now)
		d.state = d.counts.Granted(d.state, it.Cost)
	}
}

// withdraw takes the units of a shared Return off the debt of its key, and reports whether it did. It leaves units that a
// receipt of the memory names to the Return of that receipt. Units that have drained are not owed any more, so they need
// no Return.
func (l *ledger) withdraw(it *item, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.keys[it.Key]
	if d == nil || d.rest != nil || d.whole != it.Limit || d.bringTo(now) == 0 || d.forced < it.Cost {
		return false
	}
	d.forced -= it.Cost
	d.state = d.counts.Granted(d.state, it.Cost)
	return true
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

// pop returns the backfills of up to most keys that may be sent at now. It forgets
// keys that owe nothing any more. The caller sends the backfills and ends each.
func (l *ledger) pop(most int, now int64) (sent []backfill) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, d := range l.keys {
		if len(sent) == most {
			break
		}
		if d.after > now || d.rest != nil {
			continue
		}
		units := d.bringTo(now)
		if units == 0 {
			delete(l.keys, key)
			continue
		}
		d.rest = &debt{key: d.key, whole: d.whole, counts: d.counts}
		sent = append(sent, backfill{d, lone(step.Item{Key: d.key, Limit: d.whole, Op: step.Backfill, Cost: units}), units})
	}
	return sent
}

// end ends a backfill. If the primary has refused it, the debt is not sent before the
// instant after, so that trouble is not answered with more calls. A Reset may have
// dropped the debt.
func (l *ledger) end(b backfill, refused bool, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := b.debt
	switch rest := d.rest; {
	case l.keys[d.key] != d:
	case refused:
		d.rest, d.after = nil, after
	case rest.state.Empty():
		delete(l.keys, d.key)
	default:
		l.keys[d.key] = rest
	}
}

// hurry lets all debts be sent at once.
func (l *ledger) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.keys {
		d.after = 0
	}
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

// bringTo forgets the units that do not count any more at now, and returns the
// others.
func (d *debt) bringTo(now int64) (units int64) {
	d.state = d.counts.At(d.state, now)
	if units = d.counts.Used(d.state); units == 0 {
		d.forced = 0
	}
	return units
}
