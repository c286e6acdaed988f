// The Limit, and the constructors that are named after the algorithms.

package algorithms

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// An Algorithm is a way of counting. The constructors that bear the algorithms'
// names make limits. The zero Algorithm is that of the zero Limit.
type Algorithm struct{ row *step.Row }

// String returns the name as limits are written, e.g. "token-bucket"; "nobody"
// for the limit Nobody, "" for the zero Limit.
func (a Algorithm) String() string {
	if a.row == nil {
		return ""
	}
	return a.row.Name
}

func (a Algorithm) refills(r step.Refill) bool { return a.row != nil && a.row.Refill == r }

// Continuous reports whether quota comes back bit by bit (the two buckets)
// rather than window by window.
func (a Algorithm) Continuous() bool { return a.refills(step.Continuously) }

// Aligned reports whether quota comes back for all keys at the same instant
// (windows of the clock or the calendar), so that clients who wait would return
// all at once.
func (a Algorithm) Aligned() bool { return a.refills(step.AtTurns) }

// Calendar reports whether windows are periods of the calendar, whose lengths
// differ: [Limit.Window] is a length that stands for them.
func (a Algorithm) Calendar() bool { return a.row != nil && a.row.Calendar }

// Concurrent reports whether requests hold units while they run, and returns
// free them: [Limit.Window] is then the longest hold without renewal.
func (a Algorithm) Concurrent() bool { return a.refills(step.OnReturn) }

// A Limit says how much: an algorithm, requests per window, and a burst. It is
// a comparable value that travels with every check. The zero Limit is invalid,
// so that a forgotten limit is an error rather than a decision.
//
// A Limit may be invalid; [Limit.Validate] reports it, and every Limiter asks.
type Limit struct {
	step   step.Limit
	beyond int16 // ns of the window beyond whole µs: a mistake
	valid  bool
}

// TokenBucket admits bursts of up to the burst (at first: requests), then
// the sustained rate of requests per window. Any one window may thus see
// burst + requests: of 100 per minute, up to 199 pass in the first minute. State:
// one integer, or three, per key; five where a charge comes long after the last
// unit drained, or after a Reset; eight where a receipt was returned out of order.
//
// It is GCRA's arithmetic (ITU-T I.371), kept in whole units.
func TokenBucket(requests int64, window time.Duration) Limit {
	return newLimit(step.TokenBucket, requests, window)
}

// LeakyBucket smooths: it admits into a queue of burst places (at first:
// requests), the one being served included, which drains at requests per
// window. [Decision.Delay] says when an admitted request is to be served; a
// full queue denies. nginx's limit_req counts only those who wait, and so
// admits one more at the same burst.
func LeakyBucket(requests int64, window time.Duration) Limit {
	return newLimit(step.LeakyBucket, requests, window)
}

// SlidingWindowCounter approximates [SlidingWindowLog] with two counters: the
// previous window counts in the proportion that still overlaps. It assumes
// that requests were spread evenly there. Over time it admits no more than the
// limit. The fullest window of any kind was measured with a limit of 100. It holds
// 99 at steady overload, 111 at random overload, 149 if the overload begins in the
// middle of a window, and 199 in the worst case. For R requests the worst case is
// 2R - 1: all come at a window's end, and the others as soon as they are admitted.
//
// Its windows follow the clock, as those of FixedWindow do. A client that uses the
// whole limit of R at the beginning of a window is denied for up to the window and
// an Rth of it more: for two minutes at 1 per minute, for 60.6 s at 100.
//
// The counter also denies what the log would admit. If a client sends bursts of the
// whole limit, 1.01 windows apart, it denies 31 % of them; 1.5 windows apart, 25 %.
func SlidingWindowCounter(requests int64, window time.Duration) Limit {
	return newLimit(step.SlidingWindowCounter, requests, window)
}

// SlidingWindowLog admits at most requests in any window whatsoever, exactly.
// It stores one entry per admitted request, and so takes at most 10 000
// requests: for logins, payments, and few keys.
func SlidingWindowLog(requests int64, window time.Duration) Limit {
	return newLimit(step.SlidingWindowLog, requests, window)
}

// FixedWindow counts in windows aligned to the Unix epoch: a window of a day
// turns at 00:00 UTC. Around a turn it admits up to twice the requests within
// one window's length.
func FixedWindow(requests int64, window time.Duration) Limit {
	return newLimit(step.FixedWindow, requests, window)
}

// PerDay counts in days of the calendar in a time zone, of 23 to 25 hours where
// clocks are set; nil is UTC. It is for quotas that people read in a contract.
// Around midnight it admits up to twice the requests, as [FixedWindow] does,
// and all clients come back at once: it is no protection of a server.
//
// The zone must be one that [time.LoadLocation] finds by its name, and so not
// [time.Local]. The store's clock decides the day. The clocks of instances may differ
// from it by up to a day.
func PerDay(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("day", zone))
}

// PerMonth is [PerDay] for months of the calendar. A key that changes from one
// to the other keeps what it has used in the present period of the old limit,
// as far as that was in the present period of the new one.
func PerMonth(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("month", zone))
}

func calendarLimit(requests int64, c *step.Calendar) Limit {
	l := newLimit(step.CalendarWindow, requests, step.CalendarUnits[c.Unit])
	l.step.Calendar = c
	return l.validated()
}

// Concurrent admits n requests at a time: a Take holds its units until a Return
// with its receipt frees them, or for maxHold if that never comes, since the
// process may have died. What takes longer renews its hold meanwhile: [Renew].
// n is at most 10 000. State: an entry per unit that is held, in Redis of 54 bytes
// while there are few, and of 145 from 129 on.
//
// Use it for slow requests, streams, and work that is billed per connection. It
// bounds no rate: where requests are fast, or callers might forget to return,
// use another limit. The wait of a denied request is unknown. RetryAfter and
// ResetAfter are upper bounds: they count until enough holds have ended by
// themselves.
//
// Without Redis, each instance admits its share of n, and at least one. Running
// requests come on top.
//
// A Force holds units beyond n, up to 2n, and nothing returns them. A Grant frees
// the oldest units, though their requests may still run.
func Concurrent(n int64, maxHold time.Duration) Limit {
	return newLimit(step.Concurrent, n, maxHold)
}

// Nobody denies every request, also one that costs nothing.
func Nobody() Limit {
	return Limit{step: step.Limit{Row: step.Nobody, Scope: step.Nobody}, valid: true}
}

func newLimit(row *step.Row, requests int64, window time.Duration) Limit {
	l := Limit{step: step.NewLimit(row, requests, window.Microseconds()), beyond: int16(window % time.Microsecond)}
	return l.validated()
}

// WithBurst returns the limit with another burst: the most units that a bucket
// admits at once. Limits of windows have none, and become invalid.
func (l Limit) WithBurst(burst int64) Limit {
	l.step.Burst = burst
	l.step = l.step.Reduced()
	return l.validated()
}

// validated returns l, which knows whether it is valid: every check asks.
func (l Limit) validated() Limit {
	l.valid = l.Validate() == nil
	return l
}

// Step returns the integers of the limit. It is for this module's limiters.
func (l *Limit) Step() *step.Limit { return &l.step }

// LimitOf returns the limit of integers that were derived from a valid limit's,
// such as a share. It is for this module's limiters.
func LimitOf(l step.Limit) Limit { return Limit{step: l, valid: true} }

// Algorithm returns the algorithm; its String is empty for the zero Limit.
func (l Limit) Algorithm() Algorithm { return Algorithm{l.step.Row} }

// Requests returns how many units come back per window, or may be held at a
// time; 0 for Nobody.
func (l Limit) Requests() int64 { return l.step.Requests }

// Window returns the window; 0 for Nobody. For a day of the calendar it is 24
// hours, for a month 31 days; for concurrent requests it is the longest hold.
func (l Limit) Window() time.Duration {
	return time.Duration(l.step.Window)*time.Microsecond + time.Duration(l.beyond)
}

// Burst returns the most units that can be taken at once: for limits of
// windows the requests, 0 for Nobody.
func (l Limit) Burst() int64 { return l.step.Burst }

// Validate returns every mistake of the limit at once, or nil. The errors wrap
// [ErrInvalid].
func (l Limit) Validate() error {
	row := l.step.Row
	switch row {
	case step.Nobody:
		return nil
	case nil:
		return fmt.Errorf("%w: no limit (the zero Limit; use Nobody() to deny everybody)", ErrInvalid)
	}
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: limit %v: %s", ErrInvalid, l, fmt.Sprintf(format, args...)))
	}
	n := &l.step
	if n.Requests < 1 || n.Requests > step.MaxRequests {
		mistake("requests must be between 1 and %d", int64(step.MaxRequests))
	}
	if l.beyond != 0 {
		mistake("the window must be whole microseconds")
	} else if n.Window < 1 || n.Window > step.MaxWindow {
		mistake("the window must be between 1µs and %v", time.Duration(step.MaxWindow)*time.Microsecond)
	}
	if n.Requests > row.MaxRequests && n.Requests <= step.MaxRequests {
		mistake("%s takes at most %d requests%s", row.Name, row.MaxRequests, row.Beyond)
	}
	switch {
	case row.Refill != step.Continuously && n.Burst != n.Requests:
		mistake("%s has no burst", row.Name)
	case row.Refill != step.Continuously:
	case n.Burst < 1 || n.Burst > step.MaxRequests:
		mistake("the burst must be between 1 and %d", int64(step.MaxRequests))
	case !n.Exact():
		mistake("requests and window share no large factor, which is exact only up to smaller bursts; choose a burst below %d, or a rounder rate", (step.MaxExact/n.R)/2)
	}
	if c := n.Calendar; c != nil && !c.Known() {
		mistake("there is no time zone %q that has this name everywhere; use one that time.LoadLocation finds", c.Zone)
	}
	return errors.Join(errs...)
}
