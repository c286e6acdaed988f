// Several checks in one call, all or nothing, over states that a store has loaded. Twin: lua/call.lua.
//
// judge gives all takes their verdicts first, against the states as they are. charge follows only after the last
// verdict, because one denial means that no take is charged. Takes on one key add up: each needs its own cost plus the
// costs of the takes before it. Trials come last. They have keys of their own, so the takes do not notice them.
// Trials of one key are decided in their order: each sees the state that those before it have left.
//
// Example: a burst of 4, unused. A call has the takes A (key k, cost 2), B (key k, cost 3) and C (another key, cost 1),
// and a trial D. A needs 2 and fits. B needs 2 + 3 = 5 and is denied. C fits. Because of B, no take is charged, and
// neither is D. All answers show the states before the call; B's RetryAfter is the time until 5 fit, which never
// happens here. pair.go has the takes that depend on another.

package step

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// MaxChecks bounds a call, because other calls wait while it is decided.
const MaxChecks = 1_000

// ErrInvalid is wrapped by every error that the caller caused.
var ErrInvalid = errors.New("invalid check")

var (
	errMixed = fmt.Errorf("algorithms: %w: takes and settlements in one call", ErrInvalid)
	errFirst = fmt.Errorf("algorithms: %w: trial-instead without a take before it", ErrInvalid)
	errTrial = fmt.Errorf("algorithms: %w: a trial needs a key of its own, not a take's", ErrInvalid)
)

// An Op is the operation of a check.
type Op uint8

// The ops, in the numbers that the script reads.
const (
	Take Op = iota
	TakeReserved
	TakeElse
	Trial
	TrialInstead
	Return
	Force
	Grant
	Reset
	Renew
	// Backfill charges as many of the units as fit: units that were admitted
	// without the store.
	Backfill
	// First is a Take that the call has just before a TakeReserved or a
	// TakeElse.
	First
)

// Settles reports whether op belongs in a call of settlements.
func (op Op) Settles() bool { return op >= Return && op != First }

// Decides reports whether a denial of op denies the call.
func (op Op) Decides() bool { return op <= TakeElse }

// Takes reports whether op is a take: it decides, or is the first of a pair.
func (op Op) Takes() bool { return op.Decides() || op == First }

// Depends reports whether op is the second take of a pair.
func (op Op) Depends() bool { return op == TakeReserved || op == TakeElse }

// Reads reports whether op reads the receipt of a take.
func (op Op) Reads() bool { return op == Return || op == Renew }

// An Item is a valid check as a store decides it.
type Item struct {
	Key   Key
	Limit Limit
	Op    Op
	Cost  int64 // at most MaxUnits

	ID      int64   // of a take, if the row TakesApart
	Receipt Receipt // read by Return and Renew
	Dropped bool    // another limiter issued the receipt, or the settlement is made: nothing happens

	Index  int   // of the item in its call
	Need   int64 // Cost, plus the costs of earlier takes of the call on the key
	Home   *Item // the first item of the call with the same key; it holds the state
	others bool  // at Home: other items of the call have the key
	Before *Item // of TrialInstead: the take to leave out; of the second of a pair: the first

	Held    Held // of the item at Home
	Refused bool // the store has no room for the key
	Answer  Answer

	judged State         // brought to now
	wait   time.Duration // of the first of a pair: its RetryAfter
}

// Held is the state of a key while a call decides on it.
type Held struct {
	State  State
	Exists bool // the store had a state that parses
	Dirty  bool // State must be written
}

// ids number the takes of this process. They begin at a random number below 2^52, so the units of two processes that one
// key holds have different ids: among a thousand processes with 100 000 running requests each, two such ids meet with a
// probability of 1 in 40 000, and then one unit too much is free.
var ids = func() *atomic.Int64 {
	var ids atomic.Int64
	ids.Store(rand.Int64N(MaxExact / 2))
	return &ids
}()

// Forget drops the references of an item that is kept for another check. Other
// fields may be stale then.
func (it *Item) Forget() {
	it.Key, it.Home, it.Before = Key{}, nil, nil
	it.Held, it.judged = Held{}, State{}
}

// NextID returns a number that no other take of this process has.
func NextID() int64 { return ids.Add(1) }

// A Call is the items of one call, in order. The zero Call is empty.
type Call struct{ Items []*Item }

// CheckSize returns an error if a call holds too many checks.
func CheckSize(checks int) error {
	if checks > MaxChecks {
		return fmt.Errorf("algorithms: %w: %d checks in one call, want at most %d", ErrInvalid, checks, MaxChecks)
	}
	return nil
}

// Add appends an item, which must stay where it is while the Call is used. It
// finds the earlier items that matter to this one.
func (c *Call) Add(it *Item) error {
	it.Index, it.Home, it.Need, it.Before, it.others = len(c.Items), it, it.Cost, nil, false
	c.Items = append(c.Items, it)
	if it.Op.Settles() != c.Items[0].Op.Settles() {
		return errMixed
	}
	if it.Op.Settles() {
		it.Need = 0
	}
	if it.Op.Depends() {
		if err := c.pair(it); err != nil {
			return err
		}
	}
	for _, other := range c.Items[:it.Index] {
		if it.Op == TrialInstead && other.Op.Takes() {
			it.Before = other
		}
		if other.Key != it.Key {
			continue
		}
		it.Home, other.Home.others = other.Home, true
		switch {
		case other.Op.Takes() != it.Op.Takes() && !it.Op.Settles():
			return errTrial
		case it.Op.Depends() || other.Op.Depends() || other.Op == First:
			return errAlone
		case it.Op == Take:
			it.Need += other.Cost
		}
	}
	if it.Op == TrialInstead && it.Before == nil {
		return errFirst
	}
	return nil
}

// Decide decides the call. The Held of every key's first item (Home) holds the key's state. room reports whether the
// store can hold a new key that an item charges; it marks the item as Refused otherwise.
func (c *Call) Decide(now int64, room func(*Item) bool) {
	if len(c.Items) > 0 && c.Items[0].Op.Settles() {
		for _, it := range c.Items {
			if !it.adds() || room(it) {
				it.settle(now)
			}
		}
		return
	}
	denied := c.judge(now)
	for _, it := range c.Items {
		if denied == 0 && it.chosen() && it.charges() && !room(it) {
			it.Answer.Allowed = false
			denied++
			if it.Op == First { // the call is refused, whatever else fits
				second := c.Items[it.Index+1]
				second.Refused, second.Answer.Allowed = true, false
			}
		}
	}
	c.charge(now, denied, room)
}

// judge gives every take its verdict against the states as they are, and
// returns how many are denied. It goes on after the first denial, because
// responses show the figures of all.
func (c *Call) judge(now int64) (denied int) {
	for _, it := range c.Items {
		if !it.Op.Takes() {
			continue
		}
		if it.look(now); it.Op.Decides() && !it.Passes() {
			denied++
		}
	}
	return denied
}

// charge charges the takes, if none is denied, and then every trial whose
// condition holds and for whose key the store has room.
func (c *Call) charge(now int64, denied int, room func(*Item) bool) {
	for _, it := range c.Items {
		if denied == 0 && it.chosen() {
			it.charge(now)
		}
	}
	for _, it := range c.Items {
		if it.Op.Takes() {
			continue
		}
		it.look(now)
		others := denied
		if it.Op == TrialInstead && !it.Before.Passes() {
			others--
		}
		if !it.Answer.Allowed || others > 0 {
			continue
		}
		if it.charges() && !room(it) {
			it.Answer.Allowed = false
			continue
		}
		it.charge(now)
	}
}

// charges reports whether a take or trial writes its key.
func (it *Item) charges() bool { return it.Cost > 0 && it.Limit.Row.step != nil }

// look brings the item's state to now and judges it.
func (it *Item) look(now int64) {
	step, l := it.Limit.Row.step, &it.Limit
	if step == nil { // nobody
		return
	}
	held := &it.Home.Held
	s, changed := step.at(held.State, now, l)
	if changed {
		held.State, held.Dirty = s, true
	}
	it.judged = s
	it.Answer = l.answer(s, it.Need)
	it.Answer.Allowed = l.fits(l.Used(s), it.Need) || it.reserved() && l.fitsReserve(l.Used(s), it.Need)
	it.Answer.Missing = !held.Exists
}

// charge takes the item's cost from its key's state. Another item of the same key may have changed the state since it
// was judged.
func (it *Item) charge(now int64) {
	step, l := it.Limit.Row.step, &it.Limit
	if step == nil {
		return
	}
	held, s := &it.Home.Held, it.judged
	if it.Home.others {
		s, _ = step.at(held.State, now, l)
	}
	if it.Cost > 0 {
		s = l.charge(s, now, it.Cost, it.ID)
		held.State, held.Dirty = s, true
	}
	it.put(l.answer(s, 0))
	it.Answer.Charged = it.Cost > 0
}

// put replaces the state of an answer, and keeps its verdict.
func (it *Item) put(a Answer) {
	a.Allowed, a.Missing = it.Answer.Allowed, it.Answer.Missing
	it.Answer = a
}
