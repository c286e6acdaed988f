// The Limit, and one constructor per algorithm.

package algorithms

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// An Algorithm is a way of counting. The zero Algorithm belongs to the zero
// Limit.
type Algorithm struct{ row *step.Row }

// String returns the name in limits, e.g. "token-bucket"; "" for the zero
// Limit.
func (a Algorithm) String() string {
	if a.row == nil {
		return ""
	}
	return a.row.Name
}

func (a Algorithm) refills(r step.Refill) bool { return a.row != nil && a.row.Refill == r }

// Continuous reports whether units come back one by one.
func (a Algorithm) Continuous() bool { return a.refills(step.Continuously) }

// Aligned reports whether units come back for all keys at once.
func (a Algorithm) Aligned() bool { return a.refills(step.AtTurns) }

// Calendar reports whether windows are those of a calendar.
func (a Algorithm) Calendar() bool { return a.row != nil && a.row.Calendar }

// Concurrent reports whether requests hold units while they run.
func (a Algorithm) Concurrent() bool { return a.refills(step.OnReturn) }

// A Limit says how much: an algorithm, requests per window, and a burst. It is comparable. The zero Limit is invalid;
// [Limit.Validate] checks others.
//
// It has at most 10^9 units; a [FixedWindow] or a calendar's, which only adds units, 10^12; a [SlidingWindowLog] or
// [Concurrent], which stores each unit, 10^4.
type Limit struct {
	step step.Limit
	// beyond is ns of the window beyond whole µs, which make it invalid. It is no smaller integer, because a value of 112
	// bytes is copied in whole blocks of 16, and one of 104 in blocks that overlap. With 104, a remembered denial takes
	// 6 % longer.
	beyond int64
	valid  bool
}

// TokenBucket admits up to the burst at once (by default: requests), and then
// requests per window. "100 per minute" means 100 on average: an unused key
// admits up to 199 (burst + requests - 1) in its first minute.
func TokenBucket(requests int64, window time.Duration) Limit {
	return newLimit(step.TokenBucket, requests, window)
}

// LeakyBucket admits into a queue of burst places (by default: requests), including the request being served.
// "100 per minute" serves one request every 600 ms, and admits up to 199 in a minute.
func LeakyBucket(requests int64, window time.Duration) Limit {
	return newLimit(step.LeakyBucket, requests, window)
}

// SlidingWindowCounter approximates [SlidingWindowLog]: it assumes that the requests of the previous window came
// evenly. Windows follow the clock. "100 per minute" means 100 on average: any 60 seconds admit at most 199 (2R-1).
// It denies 25 to 31 % of the requests in bursts of R that come every 1.01 to 1.5 windows. A client that uses R at
// once waits up to 60.6 s: a window and an Rth of it.
func SlidingWindowCounter(requests int64, window time.Duration) Limit {
	return newLimit(step.SlidingWindowCounter, requests, window)
}

// SlidingWindowLog admits at most requests in any window: "100 per minute" never means more, except without Redis:
// see [FailLocal].
func SlidingWindowLog(requests int64, window time.Duration) Limit {
	return newLimit(step.SlidingWindowLog, requests, window)
}

// FixedWindow counts in windows aligned to the Unix epoch: a window of a day
// turns at 00:00 UTC. "100 per minute" means 100 in each minute of the clock,
// and up to 200 in the 60 seconds around a turn.
func FixedWindow(requests int64, window time.Duration) Limit {
	return newLimit(step.FixedWindow, requests, window)
}

// PerDay counts in calendar days of a zone of [time.LoadLocation]; nil is UTC.
// Around midnight it admits up to twice the requests, and all clients come back
// at once. The store's clock decides the day, within a day of the instance's.
func PerDay(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("day", zone))
}

// PerWeek is [PerDay] for weeks that begin on a day, such as time.Monday.
func PerWeek(requests int64, zone *time.Location, first time.Weekday) Limit {
	return calendarLimit(requests, step.CalendarOf(step.Week(first), zone))
}

// PerMonth is [PerDay] for calendar months.
func PerMonth(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("month", zone))
}

// PerQuarter is [PerDay] for calendar quarters.
func PerQuarter(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("quarter", zone))
}

// PerYear is [PerDay] for calendar years.
func PerYear(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, step.CalendarOf("year", zone))
}

func calendarLimit(requests int64, c *step.Calendar) Limit {
	l := newLimit(step.CalendarWindow, requests, step.CalendarUnits[c.Unit].Longest)
	l.step.Calendar = c
	return l.validated()
}

// Concurrent admits n requests at a time. A Take holds its units until a Return frees them, or until maxHold has
// passed without a [Renew]. RetryAfter and ResetAfter are upper bounds without a Renew. Without Redis, each instance
// admits its share beside running requests. Nothing returns a Force. A Grant frees the oldest units.
func Concurrent(n int64, maxHold time.Duration) Limit {
	return newLimit(step.Concurrent, n, maxHold)
}

// Nobody denies every request, also one of cost 0.
func Nobody() Limit {
	return Limit{step: step.Limit{Row: step.Nobody, Scope: step.Nobody}, valid: true}
}

func newLimit(row *step.Row, requests int64, window time.Duration) Limit {
	l := Limit{step: step.NewLimit(row, requests, window.Microseconds()), beyond: int64(window % time.Microsecond)}
	return l.validated()
}

// WithBurst returns a bucket with another burst. Other limits become invalid. Behind HTTP, give at least the units of
// a second, because clients wait for whole seconds.
func (l Limit) WithBurst(burst int64) Limit {
	l.step.Burst = burst
	l.step = l.step.Reduced()
	return l.validated()
}

// validated returns l with a note whether it is valid, because every check
// asks.
func (l Limit) validated() Limit {
	l.valid = l.Validate() == nil
	return l
}

// Step is for this module's limiters.
func (l *Limit) Step() *step.Limit { return &l.step }

// LimitOf is for this module's limiters.
func LimitOf(l step.Limit) Limit { return Limit{step: l, valid: true} }

// Algorithm returns the algorithm.
func (l Limit) Algorithm() Algorithm { return Algorithm{l.step.Row} }

// Requests returns the units per window, or at a time; 0 for Nobody.
func (l Limit) Requests() int64 { return l.step.Requests }

// Window returns the window: the longest of a calendar, such as 31 days for a month, maxHold for Concurrent, 0 for
// Nobody.
func (l Limit) Window() time.Duration {
	return time.Duration(l.step.Window)*time.Microsecond + time.Duration(l.beyond)
}

// Burst returns the most units at once; 0 for Nobody.
func (l Limit) Burst() int64 { return l.step.Burst }

// Validate returns everything that is wrong with the limit, wrapped in
// [ErrInvalid].
func (l Limit) Validate() error {
	row := l.step.Row
	switch row {
	case step.Nobody:
		return nil
	case nil:
		return fmt.Errorf("%w: no limit (the zero Limit): set one, or use Nobody() to deny all requests", ErrInvalid)
	}
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: limit %v: %s", ErrInvalid, l, fmt.Sprintf(format, args...)))
	}
	n := &l.step
	if n.Requests < 1 || n.Requests > row.MaxRequests {
		mistake("requests must be between 1 and %d%s", row.MaxRequests, row.Beyond)
	}
	if n.Calendar != nil && n.Window == 0 {
		mistake("a week begins on one of time.Sunday to time.Saturday")
	} else if l.beyond != 0 {
		mistake("the window must be whole microseconds")
	} else if n.Window < 1 || n.Window > step.MaxWindow {
		mistake("the window must be between 1µs and %v", time.Duration(step.MaxWindow)*time.Microsecond)
	}
	switch {
	case row.Refill != step.Continuously && n.Burst != n.Requests:
		mistake("%s has no burst", row.Name)
	case row.Refill != step.Continuously:
	case n.Burst < 1 || n.Burst > row.MaxRequests:
		mistake("the burst must be between 1 and %d", row.MaxRequests)
	case !n.Exact():
		mistake("requests and window share no large factor, which is exact only up to smaller bursts; choose a burst below %d, or a rounder rate", (step.MaxExact/n.R)/2)
	}
	if c := n.Calendar; c != nil && !c.Known() {
		mistake("there is no time zone %q that has this name everywhere; use one that time.LoadLocation finds", c.Zone)
	}
	return errors.Join(errs...)
}
