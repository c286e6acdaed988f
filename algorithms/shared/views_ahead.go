// Takes that are admitted ahead: far from the limit, before Redis has charged them.
//
//	all takes of the call may be charged later, and their units are within
//	this instance's allowances; the views, at the earliest possible instant,
//	have room; the census is certain; Redis answers             -> admitted, charged soon
//	otherwise                                                   -> Redis decides
//
// The allowance is Ahead per cent of the burst, divided by the number of instances and
// rounded down. It bounds the units that this instance has admitted and that Redis has
// not acknowledged.
//
// The bound. Let N be the units in use in Redis, U the units that are not acknowledged,
// and D the sum of the allowances, at most the burst B. Whenever a unit is admitted, N + U <=
// B + D. Let s be the latest instant at which Redis admitted a unit by itself, so N <= B
// then. An instance whose view is older than s has added at most its allowance since: what
// Redis has charged for it since is not acknowledged, because an acknowledgement would have made
// a newer view. If no view is newer, that is the sum. Otherwise take the newest of all views.
// Its instance found room for all it had added, and every other one has added at most its
// allowance since. So a token bucket admits at most B + r·T + D in any time T, whatever the
// delays, the order of answers and the clocks. Fixed windows carry an overdraft as
// debt: B + D in a window, and k·B + D in k windows. Sliding window counters forget
// debts: B + D in each window.
//
// That needs four things. An older answer never replaces a newer one; one answer
// updates the view and its units together; no view with such units is evicted; and if a view
// that counts was evicted, unknown keys of its shard ask until that view would be empty.
//
// The census is certain if this instance has been announced for 10 s without a gap, and
// announced itself within the last 10 s. Then all instances that admit ahead have
// counted each other.
//
// Example: 100 per minute, Ahead 20, four instances: each has an allowance of 5. A client
// that has used 60 is admitted ahead everywhere. Of a spent key, four instances with old
// views admit 20 more; Redis denies their charges, forces them, and the debt delays the next
// units by 12 s.

package shared

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// maxCharges bounds the charges under way, each of which is a goroutine with some kilobytes. Beyond it, calls ask.
const maxCharges = 16 << 10

// An aheadReason is why a call asked Redis that could have been admitted ahead.
type aheadReason int

const (
	askedNot aheadReason = iota
	askedNear
	askedAllowance
	askedCensus
	askedBusy
	askedUnknown
	askedTrouble
	aheadReasons
)

// announced notes whether this instance has announced itself, by a question that was sent at
// an instant, and how many instances are live.
func (v *views) announced(sent time.Duration, live int64, known bool) {
	gap := !known || v.live.Load() == 0 || sent-time.Duration(v.last.Load()) >= aheadAfter
	if v.live.Store(live); gap {
		v.since.Store(int64(v.now()))
	}
	if known {
		v.last.Store(int64(sent))
	}
}

// aheadAfter is how long an instance is announced before all others have counted it.
const aheadAfter = 2 * beatEvery

// instances returns how many instances share a limit at most; or why that is not certain.
func (v *views) instances(now time.Duration) (int64, aheadReason) {
	since, last, live := time.Duration(v.since.Load()), time.Duration(v.last.Load()), v.live.Load()
	switch {
	case v.closed.Load() || v.open() || v.offset.Load() == 0:
		return 0, askedTrouble
	case live == 0 || since+aheadAfter >= now || last+aheadAfter <= now:
		return 0, askedCensus
	case v.charges.Load() >= maxCharges:
		return 0, askedBusy
	}
	return live, askedNot
}

// admit admits the takes of a call ahead, or none of them.
func (v *views) admit(c *call, now time.Duration) bool {
	live, why := v.instances(now)
	for i := 0; i < len(c.items) && why == askedNot; i++ {
		if why = v.reserve(&c.items[i], now, live); why != askedNot {
			v.release(c.items[:i])
		}
	}
	if v.asked[why].Add(1); why != askedNot {
		return false
	}
	for i := range c.items {
		c.items[i].decide(c.items[i].Now, algorithms.Shared)
	}
	v.owe(c.items)
	return true
}

// owe adds the units of items, which are reserved, to their charges, and starts these.
func (v *views) owe(items []item) {
	for i := range items {
		it := &items[i]
		sh, w := v.locked(it)
		starts := !w.flies
		w.pending, w.flies = w.pending+it.Cost, true
		sh.mu.Unlock()
		if !starts {
			continue
		}
		if v.charges.Add(1); v.closed.Load() { // close may have seen no charge: the caller waits for it
			v.charge(sh, w)
		} else {
			go v.charge(sh, w)
		}
	}
}

// release frees the units of items, which are reserved and are not charged.
func (v *views) release(items []item) {
	for i := range items {
		it := &items[i]
		sh, w := v.locked(it)
		w.unacked -= it.Cost
		sh.mu.Unlock()
	}
}

// reserve counts the units of an item as admitted ahead, or returns why they may not be.
func (v *views) reserve(it *item, now time.Duration, live int64) aheadReason {
	l := &it.Limit
	allowance := v.allowance(l.Burst, live)
	if it.Cost > allowance {
		if allowance == 0 {
			v.asking.note(it.Key.Policy, l.Burst)
		}
		return askedAllowance
	}
	sh, w := v.locked(it)
	defer sh.mu.Unlock()
	if w == nil && now >= sh.lossy {
		w = sh.add(it, now)
	}
	switch {
	case w == nil, w.limit.Value() != it.Limit:
		return askedUnknown
	case w.troubled, w.unsure:
		return askedTrouble
	case w.unacked+it.Cost > allowance:
		return askedAllowance
	}
	it.Now = v.offset.Load() + now.Microseconds()
	s := step.State{T: it.Now}
	if w.now != 0 {
		it.Now = w.now + (now - w.answered).Microseconds()
		s = l.At(w.state(), it.Now)
	}
	margin := int64(0)
	if l.Row.Refill == step.Continuously { // what others add meanwhile is debt, so buckets ask earlier
		margin = min(live-1, 4) * allowance
	}
	if !l.Fits(s, w.unacked+it.Cost+margin) {
		return askedNear
	}
	w.unacked += it.Cost
	s.N = min(l.Cap, s.N+w.unacked+(live-1)*allowance) // others may admit as much: figures never promise more than there is
	it.Answer = step.Answer{Allowed: true, Charged: true, T: s.T, N: s.N, F: s.F}
	return askedNot
}
