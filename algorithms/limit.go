package algorithms

import (
	"errors"
	"fmt"
	"time"
)

// An Algorithm is a way of counting. Limits are made by the constructors that
// bear the algorithms' names.
type Algorithm uint8

const (
	algorithmNone Algorithm = iota // of the zero Limit
	algorithmNobody
	algorithmTokenBucket
	algorithmLeakyBucket
	algorithmSlidingWindowCounter
	algorithmSlidingWindowLog
	algorithmFixedWindow
	algorithmCalendarWindow
	algorithmConcurrent
	algorithmCount
)

// String returns the name as limits are written, e.g. "token-bucket"; "nobody"
// for the limit of nobody, "" for that of the zero Limit.
func (a Algorithm) String() string {
	if a >= algorithmCount {
		return ""
	}
	return table[a].name
}

// Continuous reports whether quota comes back bit by bit (the two buckets)
// rather than window by window.
func (a Algorithm) Continuous() bool {
	return a == algorithmTokenBucket || a == algorithmLeakyBucket
}

// Aligned reports whether quota comes back for all keys at the same instant
// (windows of the clock or the calendar), so that clients who wait would return
// all at once.
func (a Algorithm) Aligned() bool {
	return a == algorithmFixedWindow || a == algorithmCalendarWindow
}

// Calendar reports whether windows are periods of the calendar, whose lengths
// differ: [Limit.Window] is a length that stands for them.
func (a Algorithm) Calendar() bool { return a == algorithmCalendarWindow }

// Concurrent reports whether units are held while requests run, and come back
// by returns: [Limit.Window] is for how long at the most, unless renewed.
func (a Algorithm) Concurrent() bool { return a == algorithmConcurrent }

// Bounds of what a limit may say. They keep every product that the arithmetic
// forms exact, in int64 and in the doubles of Redis's Lua.
const (
	maxRequests    = 1_000_000_000
	maxLogRequests = 10_000    // of what has an entry per request
	maxWindow      = 1<<45 - 1 // µs: 407 days
	maxUnits       = 1 << 30   // what a state may hold, and the largest cost that a store sees
	maxExact       = 1 << 53   // doubles are exact below
)

// A Limit says how much: an algorithm, requests per window, and a burst. It is
// a comparable value that travels with every check. The zero Limit is invalid,
// so that a limit that somebody forgot is an error rather than a decision.
//
// A Limit may be invalid; [Limit.Validate] tells, and every Limiter asks it.
type Limit struct {
	algorithm Algorithm
	counted   Algorithm // of a share: whose key it is counted under, if not its own
	valid     bool
	beyond    int16 // ns of the window beyond whole µs: a mistake
	terms
}

// TokenBucket admits bursts of up to the burst (at first: requests), then
// the sustained rate of requests per window. Any one window may thus see
// burst + requests. State: one integer, or three, per key.
//
// It is GCRA's arithmetic (ITU-T I.371), kept in whole units.
func TokenBucket(requests int64, window time.Duration) Limit {
	return newLimit(algorithmTokenBucket, requests, window)
}

// LeakyBucket smooths: it admits into a queue of burst places (at first:
// requests), the one being served included, which drains at requests per
// window. [Decision.Delay] says when an admitted request is to be served; a
// full queue denies. nginx's limit_req counts only those who wait, and so
// admits one more at the same burst.
func LeakyBucket(requests int64, window time.Duration) Limit {
	return newLimit(algorithmLeakyBucket, requests, window)
}

// SlidingWindowCounter approximates [SlidingWindowLog] with two counters: the
// previous window counts in the proportion that still overlaps. It assumes
// that requests were spread evenly there. Over time it admits no more than the
// limit; but of a limit of 100, the fullest window whatsoever was measured to
// hold 99 at steady overload, 103 at random overload, 149 when the overload
// began in the middle of a window, and 197 when everything came at a window's
// end and the rest as soon as admitted. It is below twice the limit always.
func SlidingWindowCounter(requests int64, window time.Duration) Limit {
	return newLimit(algorithmSlidingWindowCounter, requests, window)
}

// SlidingWindowLog admits at most requests in any window whatsoever, exactly.
// It stores one entry per admitted request, and so takes at most 10 000
// requests: for logins, payments, and few keys.
func SlidingWindowLog(requests int64, window time.Duration) Limit {
	return newLimit(algorithmSlidingWindowLog, requests, window)
}

// FixedWindow counts in windows aligned to the Unix epoch: a window of a day
// turns at 00:00 UTC. Around a turn it admits up to twice the requests within
// one window's length.
func FixedWindow(requests int64, window time.Duration) Limit {
	return newLimit(algorithmFixedWindow, requests, window)
}

// PerDay counts in days of the calendar in a time zone, of 23 to 25 hours where
// clocks are set; nil is UTC. It is for quotas that people read in a contract.
// Around midnight it admits up to twice the requests, as [FixedWindow] does,
// and all clients come back at once: it is no protection of a server.
//
// The zone must be one that [time.LoadLocation] finds by its name, and so not
// [time.Local]. The day is told by the store's clock; how far instances' clocks
// are from it does not matter, up to a day.
func PerDay(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, calendarOf("day", zone))
}

// PerMonth is [PerDay] for months of the calendar. A key that changes from one
// to the other keeps what it has used in the present period of the old limit,
// as far as that was in the present period of the new one.
func PerMonth(requests int64, zone *time.Location) Limit {
	return calendarLimit(requests, calendarOf("month", zone))
}

func calendarLimit(requests int64, c *calendar) Limit {
	l := Limit{algorithm: algorithmCalendarWindow}
	l.requests, l.window, l.burst = requests, calendarUnits[c.unit].Microseconds(), requests
	l.calendar = c
	return l.reduced()
}

// Concurrent admits n requests at a time: a Take holds its units until a Return
// with its receipt frees them, or for maxHold if that never comes, since the
// process may have died. What takes longer renews its hold meanwhile: [Renew].
// n is at most 10 000. State: an entry per unit that is held, in Redis of 54 bytes
// while there are few, and of 145 from 129 on.
//
// It is for what is slow, streams, or is paid by the connection. It bounds no
// rate: where requests are fast, or callers might forget to return, another
// limit does. How long a denied request has to wait nobody knows, so RetryAfter
// and ResetAfter say the most: until enough holds have ended by themselves.
//
// Without Redis each instance admits its share of n, but at least one, beside
// what is running already.
//
// A Force holds units beyond n, up to 2n, which nothing returns; a Grant frees
// the oldest, though their requests may still run.
func Concurrent(n int64, maxHold time.Duration) Limit {
	return newLimit(algorithmConcurrent, n, maxHold)
}

// Nobody denies every request, also those that cost nothing.
func Nobody() Limit { return Limit{algorithm: algorithmNobody, valid: true} }

func newLimit(a Algorithm, requests int64, window time.Duration) Limit {
	l := Limit{algorithm: a, beyond: int16(window % time.Microsecond)}
	l.requests, l.window, l.burst = requests, window.Microseconds(), requests
	return l.reduced()
}

// WithBurst returns the limit with another burst: the most units that a bucket
// admits at once. Limits of windows have none, and become invalid.
func (l Limit) WithBurst(burst int64) Limit {
	l.burst = burst
	return l.reduced()
}

// reduced returns l with what is derived from the rest.
func (l Limit) reduced() Limit {
	if l.requests > 0 && l.window > 0 {
		g := gcd(l.requests, l.window)
		l.r, l.w = l.requests/g, l.window/g
		l.a, l.b = l.w/l.r, l.w%l.r
	}
	l.cap, l.most = min(2*l.burst, maxUnits), l.burst
	l.valid = l.Validate() == nil
	return l
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Algorithm returns the algorithm; its String is empty for the zero Limit.
func (l Limit) Algorithm() Algorithm { return l.algorithm }

// Requests returns how many units come back per window, or may be held at a
// time; 0 for Nobody.
func (l Limit) Requests() int64 { return l.requests }

// Window returns the window; 0 for Nobody. For a day of the calendar it is 24
// hours, for a month 31 days; for concurrent requests it is the longest hold.
func (l Limit) Window() time.Duration {
	return time.Duration(l.window)*time.Microsecond + time.Duration(l.beyond)
}

// Burst returns the most units that can be taken at once: for limits of
// windows the requests, 0 for Nobody.
func (l Limit) Burst() int64 { return l.burst }

// Validate returns every mistake of the limit at once, or nil. The errors wrap
// [ErrInvalid].
func (l Limit) Validate() error {
	switch l.algorithm {
	case algorithmNobody:
		return nil
	case algorithmNone:
		return fmt.Errorf("%w: no limit (the zero Limit; use Nobody() to deny everybody)", ErrInvalid)
	}
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: limit %v: %s", ErrInvalid, l, fmt.Sprintf(format, args...)))
	}
	if l.requests < 1 || l.requests > maxRequests {
		mistake("requests must be between 1 and %d", int64(maxRequests))
	}
	if l.beyond != 0 {
		mistake("the window must be whole microseconds")
	} else if l.window < 1 || l.window > maxWindow {
		mistake("the window must be between 1µs and %v", time.Duration(maxWindow)*time.Microsecond)
	}
	switch {
	case l.algorithm.Continuous():
		if l.burst < 1 || l.burst > maxRequests {
			mistake("the burst must be between 1 and %d", int64(maxRequests))
		} else if l.r > (maxExact-1)/(l.cap+1) {
			mistake("requests and window share no large factor, which is exact only up to smaller bursts; choose a burst below %d, or a rounder rate", (maxExact/l.r)/2)
		}
	case l.burst != l.requests:
		mistake("%v has no burst", l.algorithm)
	case l.calendar != nil && l.calendar.zone == nil:
		mistake("there is no time zone %q that has this name everywhere; use one that time.LoadLocation finds", l.calendar.name)
	case l.algorithm == algorithmConcurrent && l.requests > maxLogRequests:
		mistake("%v takes at most %d requests", l.algorithm, maxLogRequests)
	case l.algorithm == algorithmSlidingWindowLog && l.requests > maxLogRequests:
		mistake("%v takes at most %d requests; use sliding-window-counter", l.algorithm, maxLogRequests)
	}
	return errors.Join(errs...)
}
