package guess

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// unit is the time after which an address may send one more unknown key.
	unit = Per / Allowance

	// maxJitter is by how much the next turn may be later than a second after the last.
	maxJitter = time.Second / 8

	// maxWrong is how many unknown keys of an address are remembered: fewer than
	// Allowance, so that as many expired keys do not slow an address.
	maxWrong = 16
)

// An address is what a Table knows of one. Table.mu guards it, except that the channel is
// used without it.
type address struct {
	users  int           // tickets
	used   time.Duration // when the last ticket came
	flying chan struct{} // the look-ups that run, while the address is not slowed

	whole time.Duration // when the allowance is whole again
	spent bool          // since it was whole, the allowance has been spent

	turns [Lookups]time.Duration // when each turn is free again
	wrong []wrongKey
}

// A wrongKey is the hash of an unknown key.
type wrongKey struct {
	hash     uint64
	lookedUp time.Duration
	used     time.Duration
}

// slowed reports whether the address has spent its allowance, and it is not whole again.
func (a *address) slowed(now time.Duration) bool {
	a.spent = a.spent && now < a.whole
	return a.spent
}

// untilTurn returns the time until one more new key may be looked up, if the address is
// slowed.
func (a *address) untilTurn(now time.Duration) time.Duration {
	return max(0, slices.Min(a.turns[:])-now)
}

// begin notes that the look-up of a key begins, and takes a turn. Turns that are free
// again at random instants are no prey of a flood that comes in step.
func (a *address) begin(hash uint64, now time.Duration) {
	a.replace(slices.Min(a.turns[:]), now+time.Second+rand.N(maxJitter))
	if w := a.find(hash); w != nil {
		w.lookedUp = now // so one request of many looks an unknown key up again
	}
}

func (a *address) giveBack() { a.replace(slices.Max(a.turns[:]), 0) }

func (a *address) replace(free, with time.Duration) { a.turns[slices.Index(a.turns[:], free)] = with }

// recall reports whether a key was unknown lately.
func (a *address) recall(hash uint64, now time.Duration) bool {
	w := a.find(hash)
	if w == nil {
		return false
	}
	w.used = now
	return now-w.lookedUp < Recheck
}

func (a *address) forget(hash uint64) {
	a.wrong = slices.DeleteFunc(a.wrong, func(w wrongKey) bool { return w.hash == hash })
}

func (a *address) find(hash uint64) *wrongKey {
	for i := range a.wrong {
		if a.wrong[i].hash == hash {
			return &a.wrong[i]
		}
	}
	return nil
}

// charge remembers an unknown key. A new one costs a unit of the allowance. charge returns
// how long the allowance lacks a unit for it.
func (a *address) charge(hash uint64, now time.Duration) (wait time.Duration) {
	if w := a.find(hash); w != nil {
		w.lookedUp, w.used = now, now
		return 0
	}
	a.remember(wrongKey{hash, now, now})
	whole := max(a.whole, now) + unit
	wait = max(0, whole-now-Per)
	a.whole = min(whole, now+Per)
	a.spent = a.slowed(now) || a.whole+unit > now+Per
	return wait
}

// remember remembers a key in place of the least recently used one.
func (a *address) remember(w wrongKey) {
	if len(a.wrong) < maxWrong {
		a.wrong = append(a.wrong, w)
		return
	}
	oldest := 0
	for i := range a.wrong {
		if a.wrong[i].used < a.wrong[oldest].used {
			oldest = i
		}
	}
	a.wrong[oldest] = w
}
