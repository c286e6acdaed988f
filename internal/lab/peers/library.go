package main

import (
	"math"
	"net/http"
	"time"
)

// A library is one way to limit with a module.
type library struct {
	name   string
	slug   string // begins the names of its programs in repro
	module string // path; empty for this module
	store  string // where it counts

	// open returns an instance of a limiter. Instances of a trial share its redis-server.
	open func(t *trial, q quota) (*limiter, error)

	// byAddress returns a handler that limits client addresses as the documentation shows it; nil if the library has no
	// middleware.
	byAddress func(t *trial, q quota, next http.Handler) (http.Handler, error)

	// says has what the documentation says about a promise; "" is for all others. For a promise of absent it is the
	// reason why the cell is grey.
	says map[string]quote

	// slowest is the least rate that it can be configured for, as the time for one unit; 0 for none.
	slowest time.Duration

	// queues says that requests wait for each other, so that a crowd of them takes long and leaves the cores idle.
	queues bool

	// absent names the promises that the library does not make, and shown those of absent that are tried nonetheless,
	// because a reader wants to know what happens.
	absent, shown []string

	// script says that it is a script of articles, what is right about it, and the line that breaks.
	script        bool
	right, breaks string
}

// A quote is a sentence of a library's documentation.
type quote struct {
	text string // as in the file, except for line breaks and comment marks
	file string // within the module
}

// A quota is a limit in terms that all libraries have: as many requests per window, all of them at once if need be.
type quota struct {
	requests int
	window   time.Duration
}

// every returns the time in which one of the requests comes back, in a bucket.
func (q quota) every() time.Duration { return q.window / time.Duration(q.requests) }

// perSecond returns the rate.
func (q quota) perSecond() float64 { return float64(q.requests) / q.window.Seconds() }

// quoteOf returns what the documentation says about a promise.
func (l library) quoteOf(promise string) quote {
	if q, found := l.says[promise]; found {
		return q
	}
	return l.says[""]
}

// refilled returns how many units may have come back in a time, rounded up.
func (l library) refilled(q quota, elapsed time.Duration) int {
	unit := q.every()
	if l.slowest > 0 {
		unit = min(unit, l.slowest)
	}
	return int((elapsed + unit - 1) / unit)
}

// An answer is what a client learns from a limiter.
type answer struct {
	allowed   bool
	remaining int           // or untold
	wait      time.Duration // or untold, or never

	unreadable string // a Retry-After that is neither seconds nor an HTTP-date
}

const (
	untold = -1
	never  = time.Duration(math.MaxInt64)
)

// A limiter is an instance of a library's limiter. Functions that the library does not have are nil.
type limiter struct {
	take  func(key string) (answer, error)
	takeN func(key string, n int) (answer, error)

	// both takes one unit of the first key, and one of the second, whose limit is tight requests, or neither.
	both func(first, second string, tight int) (bool, error)

	// pair takes one unit of a key that has two parts.
	pair func(a, b string) (answer, error)

	// borrow takes units, and returns a function that gives some of them back.
	borrow func(key string, n int) (taken bool, giveBack func(n int) error, err error)

	// wholeSeconds says that the client reads waits in whole seconds, as in Retry-After.
	wholeSeconds bool
}

// libraries in the order of the table.
var libraries = []library{
	penstockMemory, penstockRedis,
	redisRate, httprateMemory, httprateRedis, ululeMemory, ululeRedis, throttledMemory, throttledRedis,
	tollboothV8, goLimiter, xTimeRate, failsafe, jujuRatelimit, fiberV3, echoV4, slidingWindow, goZeroPeriod, goZeroToken,
	mennanovMemory, mennanovRedis, kudariMemory, kudariRedis,
}
