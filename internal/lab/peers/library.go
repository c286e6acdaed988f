package main

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"
)

// A library is one way to limit with a module.
type library struct {
	name   string
	slug   string // begins the names of its functions in package repro
	module string // path; empty for this module
	store  string // where it counts

	// handler limits requests by a key, as the documentation shows it; nil if the library has no middleware.
	handler func(t *trial, q quota, by keyed) http.Handler

	// open returns an instance of a limiter; nil if the handler is all there is. Instances of a trial share its
	// redis-server.
	open func(t *trial, q quota) take

	costs bool // requests may take several units; the handler reads costHeader
	pairs bool // the handler can limit by keys of two parts

	// says has what the documentation says about a promise; "" is for all others. For a promise that the library does
	// not make it is the reason why the cell is grey.
	says map[string]quote

	// absent names the promises that the library does not make, and shown others of that kind, which are tried
	// nonetheless, because a reader wants to know what happens.
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

// A keyed has the header fields by which a handler limits. Without any, it limits by the client's address.
type keyed []string

var (
	byAddress = keyed(nil)
	byClient  = keyed{clientHeader}
	byPair    = keyed{clientHeader, secondHeader}
)

// A quota is a limit in terms that all libraries have: as many requests per window, all of them at once if need be.
type quota struct {
	requests int
	window   time.Duration
}

// every returns the time in which one of the requests comes back, in a bucket.
func (q quota) every() time.Duration { return q.window / time.Duration(q.requests) }

// perSecond returns the rate.
func (q quota) perSecond() float64 { return float64(q.requests) / q.window.Seconds() }

// makes reports whether the library makes a promise. No limiter in memory counts for several instances.
func (l library) makes(promise string) bool {
	return !slices.Contains(l.absent, promise) && !slices.Contains(l.shown, promise) && (l.store != "memory" || promise != "instances")
}

// quoteOf returns what the documentation says about a promise.
func (l library) quoteOf(promise string) quote { return cmp.Or(l.says[promise], l.says[""]) }

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

// A take asks an instance of a library's limiter for units.
type take func(key string, n int) (answer, error)

// libraries in the order of the table.
var libraries = []library{
	penstockMemory, penstockRedis,
	redisRate, httprateMemory, httprateRedis, ululeLimiter, throttledGCRA,
	tollboothV8, goLimiter, xTimeRate, fiberV3, echoV4,
}
