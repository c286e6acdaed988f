// The ledger: what the primary must still be told. Debts are units that the memory has
// admitted and that the primary has certainly not charged, until a hand-back. Returns
// that wait are in fallback_returns.go.
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
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	// maxOwed bounds the keys that owe. Units of further keys, and of keys longer
	// than maxKept, are not handed back.
	maxOwed = 100_000

	// roomSamples is how many entries dropSome looks at.
	roomSamples = 4
)

// A ledger holds the debts of all keys, and the Returns that wait.
type ledger struct {
	report                *report
	urgent                chan struct{} // has an element if a Return is to be sent at once
	handedBack, lost      atomic.Uint64 // units
	returned, returnsLost atomic.Uint64 // Returns

	mu      sync.Mutex // guards the fields below, and the debts
	debts   map[step.Key]*debt
	returns map[*keptReturn]bool
}

// A debt is the units that one key owes.
type debt struct {
	key    step.Key
	whole  step.Limit // as the primary has it
	counts step.Limit // the limit that state counts under
	state  step.State
	forced int64     // units that no receipt of the memory names, also those that have drained since
	after  time.Time // it is not sent before

	// rest is what is owed instead if the primary charges the backfill that is on its
	// way; nil if none is. Charges and Returns change both.
	rest *debt
}

// A sending is a call to the primary about an entry. ended receives its answer, which may come late.
type sending struct {
	call  *call
	ended func(error)
}

func newLedger(r *report) *ledger {
	return &ledger{
		report: r, urgent: make(chan struct{}, 1),
		debts: make(map[step.Key]*debt), returns: make(map[*keptReturn]bool),
	}
}

// refusedUntil returns when an entry may be sent again that the primary refused with err: at the next tick, or,
// while its master is bypassed, only now and then.
func refusedUntil(err error) time.Time {
	if errors.Is(err, trouble.ErrOpen) {
		return time.Now().Add(bypassedFor)
	}
	return time.Now().Add(refusedFor)
}

// hurry lets everything be sent at once.
func (l *ledger) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.debts {
		d.after = time.Time{}
	}
	for one := range l.returns {
		one.after = time.Time{}
	}
}

func (l *ledger) addStats(s *algorithms.Stats) {
	b := &s.Fallback
	b.HandedBack, b.Lost = l.handedBack.Load(), l.lost.Load()
	b.Returned, b.ReturnsLost = l.returned.Load(), l.returnsLost.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	b.Owed, b.Returns = len(l.debts), len(l.returns)
}

// record notes units of an item that the memory has charged under a share of its
// limit.
func (l *ledger) record(it *item, share *step.Limit, now int64) {
	counts := it.Limit
	if it.Limit.Row.Refill == step.Continuously {
		counts = *share
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.debts[it.Key]
	if d == nil {
		if len(it.Key.Text) > maxKept || !l.room(now) {
			return
		}
		d = &debt{key: it.Key.Clone(), counts: counts}
		l.debts[d.key] = d
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
	if len(l.debts) >= maxOwed {
		dropSome(l.debts, func(d *debt) bool { return d.bringTo(now) == 0 })
	}
	return len(l.debts) < maxOwed
}

// unrecord notes that the units of a Return are not owed any more.
func (l *ledger) unrecord(it *item, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := l.debts[it.Key]; d != nil; d = d.rest {
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
	d := l.debts[it.Key]
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
	delete(l.debts, it.Key)
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

// popDebts returns the backfills of some keys that may be sent at now. It forgets keys that owe nothing any more. The
// caller sends the backfills.
func (l *ledger) popDebts(now int64) (due []sending) {
	clock := time.Now() // once: calls of an outage wait for the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, d := range l.debts {
		if len(due) == handBackKeys {
			break
		}
		if d.rest != nil || clock.Before(d.after) {
			continue
		}
		units := d.bringTo(now)
		if units == 0 {
			delete(l.debts, key)
			continue
		}
		d.rest = &debt{key: d.key, whole: d.whole, counts: d.counts}
		sent := lone(step.Item{Key: d.key, Limit: d.whole, Op: step.Backfill, Cost: units})
		due = append(due, sending{sent, func(err error) { l.endDebt(d, units, err) }})
	}
	return due
}

// endDebt notes how the backfill of a debt ended. A Reset may have dropped the debt.
func (l *ledger) endDebt(d *debt, units int64, err error) {
	executed := trouble.Of(err).Executed // before the lock: calls of an outage wait for it
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := d.rest
	switch {
	case err == nil:
		l.handedBack.Add(uint64(units))
	case executed: // perhaps, and it must not be charged twice
		l.lost.Add(uint64(units))
	default:
		d.rest, d.after = nil, refusedUntil(err)
		return
	}
	switch {
	case l.debts[d.key] != d:
	case rest.state.Empty():
		delete(l.debts, d.key)
	default:
		l.debts[d.key] = rest
	}
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
