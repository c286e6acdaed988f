// The figures of a decision. A store answers with integers (Answer), and one
// function computes the figures from them, for every store.
//
//	Remaining  = burst - used, at least 0
//	UnitAfter  = freeAt(1) - now
//	RetryAfter = freeAt(need) - now
//	ResetAfter = freeAt(burst) - now
//
// freeAt(k) is the first instant at which k units fit. Figures of units that
// fit already are 0, and of a need above the burst, forever.
//
// Example: 60 per minute, burst 10. Ten units were in use at 0 s, and a cost of
// 3 is denied at 0.25 s. One unit drains per second, so Remaining = 0,
// UnitAfter = 0.75 s, RetryAfter = 2.75 s and ResetAfter = 9.75 s.

package step

import (
	"math"
	"time"
)

// An Answer is a store's answer to one check.
type Answer struct {
	Allowed bool // the check's own verdict
	Missing bool // the store had no state that parses
	Charged bool
	T, N, F int64 // the state: after the check's charge, or uncharged

	// Algorithms with an entry per unit answer with instants, because later
	// figures would need the entries again. 0 if the units fit, or never will.
	RetryAt int64 // when the need fits
	UnitAt  int64 // when one unit fits
}

// Figures are a Decision without its source and its receipt. They travel in
// registers.
type Figures struct {
	Allowed    bool
	Undecided  bool // the store did not decide: the figures mean nothing
	Remaining  int64
	RetryAfter time.Duration
	ResetAfter time.Duration
	UnitAfter  time.Duration
	Delay      time.Duration
}

// forever is the wait that does not end.
const forever = time.Duration(math.MaxInt64)

// refusedFor is the wait for a key without room in the store.
const refusedFor = time.Second

// A Receipt records what a take charged, and the state that it left.
type Receipt struct {
	Units   int64
	T, N, F int64 // the state that the take left
	ID      int64 // of the take, if the row TakesApart
	Last    int64 // the number of the take's last unit, if the row TakesApart
	Row     *Row
	Source  uint8 // the kind of limiter that issued it
}

// less returns the rest of a receipt after units were given back.
func (r Receipt) less(units int64) Receipt {
	if r.Units -= units; r.Units <= 0 {
		return Receipt{}
	}
	r.N -= units
	if r.Row.TakesApart {
		r.Last -= units
	}
	return r
}

// Figures computes the item's figures at now from its answer.
// Of a pair it must come first for the first item.
func (it *Item) Figures(now int64) Figures {
	f := it.figures(&it.Answer, now)
	switch {
	case it.Op == First:
		it.wait = f.RetryAfter
	case it.Op.Depends() && !f.Undecided:
		f.Allowed = it.Passes()
		if f.RetryAfter = it.pairWait(f.RetryAfter, now); f.Allowed {
			f.RetryAfter = 0
		}
	}
	return f
}

func (it *Item) figures(a *Answer, now int64) Figures {
	l, settles := &it.Limit, it.Op.Settles()
	switch {
	case it.Refused && settles, it.Dropped:
		return Figures{Allowed: true, Undecided: true}
	case it.Refused:
		return Refused()
	case l.Row.step == nil && settles:
		return Figures{Allowed: true}
	case l.Row.step == nil:
		return Figures{RetryAfter: forever, UnitAfter: forever}
	}
	s := State{T: a.T, N: a.N, F: a.F}
	used := l.Used(s)
	f := Figures{Allowed: a.Allowed, Remaining: max(0, l.Burst-used)}
	if used > 0 {
		f.ResetAfter = Until(l.freeAt(a, l.Burst), now)
	}
	if used >= l.Burst {
		f.UnitAfter = Until(l.freeAt(a, 1), now)
	}
	if !a.Allowed {
		f.RetryAfter = forever
		if it.Need <= l.Most {
			f.RetryAfter = Until(l.freeAt(a, min(it.Need, l.Burst)), now)
		}
	}
	if d := l.Row.delayer; d != nil && a.Charged && !settles {
		f.Delay = Until(d.delayUntil(s, it.Cost, l), now)
	}
	return f
}

// Later computes the figures of an item that a denial denies, at an instant after the
// answer a of the denial, as if nothing else had happened to the key.
func (it *Item) Later(a Answer, now int64) Figures {
	if it.Limit.Row.Counted {
		s := it.Limit.At(State{T: a.T, N: a.N, F: a.F}, now)
		a.T, a.N, a.F = s.T, s.N, s.F
	}
	return it.figures(&a, now)
}

// Left writes the receipt after the item, in place, because a Receipt is large. source is the kind of limiter that
// issued it.
func (it *Item) Left(r *Receipt, source uint8) {
	switch {
	case it.Op == Renew, it.Dropped:
		*r = it.Receipt
	case it.Op == Return && it.Limit.Row.step != nil:
		*r = it.Receipt.less(it.Cost)
	case it.Answer.Charged && !it.Op.Settles():
		it.Taken(r, source)
	default:
		*r = Receipt{}
	}
}

// Taken writes the receipt of a take that was charged.
func (it *Item) Taken(r *Receipt, source uint8) {
	a := &it.Answer
	*r = Receipt{Units: it.Cost, T: a.T, N: a.N, F: a.F, Source: source, Row: it.Limit.Row}
	if r.Row.TakesApart {
		r.ID, r.Last = it.ID, it.Cost
	}
}

// fullAt returns the instant at which the state is empty again; 0 if it is.
func (l *Limit) fullAt(a *Answer) int64 {
	if l.Used(State{T: a.T, N: a.N, F: a.F}) == 0 {
		return 0
	}
	return l.freeAt(a, l.Burst)
}

// FullAt returns the instant at which the state of a decided item's key is empty
// again under its limit; 0 if it is.
func (it *Item) FullAt() int64 {
	if it.Home.others {
		return it.Limit.FullAt(it.Home.Held.State)
	}
	return it.Limit.fullAt(&it.Answer)
}

// Until returns how long it is from now to an instant, both in µs; 0 if that
// has passed, forever if a Duration cannot express it.
func Until(instant, now int64) time.Duration {
	switch µs := instant - now; {
	case instant <= now:
		return 0
	case µs > math.MaxInt64/int64(time.Microsecond):
		return forever
	default:
		return time.Duration(µs) * time.Microsecond
	}
}
