package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Options configure a [Transport]. nil and the zero value mean the defaults.
type Options struct {
	// Name is the name in events and metrics, and the policy under which Limiter counts; see
	// algorithms.ValidatePolicy. "" means "client".
	Name string

	// MaxWait bounds the sum of one request's waits; 0 means 10 minutes. An earlier deadline shortens it.
	MaxWait time.Duration

	// Attempts bounds how often a request is sent; 1 means no retries. 0 means as often as MaxWait and the deadline
	// allow; then retries of a 5xx that states no wait end after 2 minutes of such waits, because the service may be dead.
	Attempts int

	// Statuses are the statuses after which a request is sent again, from 400 to 599; empty means 429 and 503. The
	// server must not have executed the request. 403 and 413 count only beside a wait.
	Statuses []int

	// Retry reports whether a request may be sent again; nil means requests of idempotent methods (RFC 9110 section
	// 9.2.2). A second execution must be harmless, or the server must deny before it executes. A request whose body has
	// no GetBody is never sent again. Many goroutines call Retry, and it must not read the body.
	Retry func(*http.Request) bool

	// Final reports whether a denial ends the retries, e.g. because a balance is used up; nil means that none does. A
	// denial with X-Should-Retry or Stripe-Should-Retry of "false" always does. If such a denial states no wait, the other
	// requests go on. Many goroutines call Final. If it reads the body, it must replace it by another one with the same text.
	Final func(*http.Response) bool

	// Pace spreads requests over the window that the server advertises, first in, first out. Until a server's first
	// response, one request is sent at a time, or one in 5 s. A server that advertises nothing is not paced until it denies.
	// Then all requests wait, also after a 503 that states no wait, and few are sent at once. Processes that share a quota
	// need a shared Limiter.
	Pace bool

	// Partition returns which quota of an origin a request uses, e.g. the account for which it is sent; nil means one per
	// origin. Waits, Pace and Limiter apply to each partition. It may be a secret, such as an API key: the Limiter receives
	// its hash. Many goroutines call it, and it must not read the body. The Transport remembers at most 1 000 partitions at a
	// time, and 100 routes of each that wait apart from the others.
	Partition func(*http.Request) string

	// Limiter and Limit bound the sent requests, one unit each, e.g. to a third party's published limits. Without Redis,
	// a shared Limiter admits this instance's share. The key is
	// origin=https://api.example.com, and "|" and a hash of the partition if there is one. A unit of a Concurrent limit is
	// held until the body is closed or read to its end. Set both fields or none. A burst of 1 loses the time by which a timer is late: give a rate
	// of 10 per second a burst of 2, and one of 100 per second a burst of 5.
	Limiter algorithms.Limiter
	Limit   algorithms.Limit

	// Observers receive all events.
	Observers []Observer
}

const (
	defaultName    = "client"
	defaultMaxWait = 10 * time.Minute // the draft's example of a long window, in its section 8.5.1

	minHold = time.Second // or renewals would be most of the limiter's traffic
)

var defaultStatuses = []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}

// completed returns a copy of o with its defaults, or every misconfiguration.
func (o *Options) completed() (Options, error) {
	c := *cmp.Or(o, &Options{})
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ratelimit: client: "+format, args...))
	}
	c.Name, c.MaxWait = cmp.Or(c.Name, defaultName), cmp.Or(c.MaxWait, defaultMaxWait)
	if err := algorithms.ValidatePolicy(c.Name); err != nil {
		wrong("Options.Name: %w", err)
	}
	if c.MaxWait < 0 {
		wrong("Options.MaxWait is %v: want a positive duration, or 0 for %v", c.MaxWait, defaultMaxWait)
	}
	if c.Attempts < 0 {
		wrong("Options.Attempts is %d: want 1 or more, or 0 for no bound", c.Attempts)
	}
	for _, status := range c.Statuses {
		if status < 400 || status > 599 {
			wrong("Options.Statuses has %d: want statuses from 400 to 599", status)
		}
	}
	if len(c.Statuses) == 0 {
		c.Statuses = defaultStatuses
	}
	c.Statuses = slices.Clone(c.Statuses)
	c.validateLimit(wrong)
	for i, observer := range c.Observers {
		if observer == nil {
			wrong("Options.Observers[%d] is nil: leave it out", i)
		}
	}
	c.Observers = slices.Clone(c.Observers)
	return c, errors.Join(errs...)
}

func (o *Options) validateLimit(wrong func(format string, args ...any)) {
	none, err := o.Limit == algorithms.Limit{}, o.Limit.Validate()
	switch {
	case o.Limiter == nil && none:
	case o.Limiter == nil:
		wrong("Options.Limit is %v and Options.Limiter is nil: set both or none", o.Limit)
	case none:
		wrong("Options.Limiter has no Options.Limit: set both or none")
	case err != nil:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			wrong("Options.Limit: %s", strings.TrimPrefix(line, algorithms.ErrInvalid.Error()+": "))
		}
	case o.Limit == algorithms.Nobody():
		wrong("Options.Limit is %v, which lets no request pass", o.Limit)
	case o.Limit.Algorithm().Concurrent() && o.Limit.Window() < minHold:
		wrong("Options.Limit holds units for %v: want at least %v", o.Limit.Window(), minHold)
	}
}
