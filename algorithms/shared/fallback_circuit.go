package algorithms

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrUnavailable is wrapped by the error of a call that the shared limiter has
// to answer, and cannot: a check of it is FailClosed, or is an operator's
// settlement. Nothing was charged locally. If the call was sent, and its answer
// lost, it may have been charged there; the error wraps the cause.
var ErrUnavailable = fmt.Errorf("the shared limiter is not available")

// errOpen is the error of a round trip that is not made. Nothing was sent.
var errOpen = fmt.Errorf("the circuit is open: %w", ErrUnavailable)

const (
	// A circuit opens on this many failed round trips in a row, or if that
	// share of many failed, within the period; and in either case only if the
	// trouble has lasted for two deadlines: one hiccup fails many at once.
	tripAfter      = 5
	tripPercent    = 50
	tripMinimum    = 20
	tripPeriod     = 10 * time.Second
	tripBuckets    = 10
	tripsDeadlines = 2
)

// A circuit says whether the primary is asked at all. It counts round trips, of
// which each may carry many calls: one lost batch is one failure.
type circuit struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	open    atomic.Bool   // not closed
	trying  atomic.Bool   // the owner's own round trips pass, and do not count
	tripped chan struct{} // with room for one: wakes the owner
	trips   atomic.Uint64
	cause   atomic.Pointer[error] // of the last failure

	// Guarded by the breaker's own lock: since when every round trip failed,
	// and since when some did.
	allSince, someSince time.Time
}

func newCircuit(deadline, openFor time.Duration) *circuit {
	c := &circuit{tripped: make(chan struct{}, 1)}
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     tripPeriod,
		BucketPeriod: tripPeriod / tripBuckets,
		Timeout:      openFor,
		MaxRequests:  1,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return c.ready(n, tripsDeadlines*deadline) },
		IsSuccessful: func(err error) bool { return troubleOf(err).effect == effectSuccess },
		IsExcluded:   func(err error) bool { return troubleOf(err).effect == effectNone },
		OnStateChange: func(_ string, from, to gobreaker.State) { // under the lock: it must not block
			c.open.Store(to != gobreaker.StateClosed)
			if from == gobreaker.StateClosed {
				c.trips.Add(1)
				select {
				case c.tripped <- struct{}{}:
				default:
				}
			}
		},
	})
	return c
}

// ready decides, after a failure, whether to open.
func (c *circuit) ready(n gobreaker.Counts, lasting time.Duration) bool {
	now := time.Now()
	if n.ConsecutiveFailures <= 1 {
		c.allSince = now
	}
	if n.TotalFailures <= 1 {
		c.someSince = now
	}
	if n.ConsecutiveFailures >= tripAfter && now.Sub(c.allSince) >= lasting {
		return true
	}
	answered := n.TotalFailures + n.TotalSuccesses
	return answered >= tripMinimum && n.TotalFailures*100 >= answered*tripPercent && now.Sub(c.someSince) >= lasting
}

// begin begins a round trip, whose outcome end must be told; an error means
// that it must not be made.
func (c *circuit) begin() (end func(error), err error) {
	if c.trying.Load() {
		return func(error) {}, nil
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, errOpen
	}
	return func(err error) {
		if troubleOf(err).effect == effectFailure {
			c.cause.Store(&err)
		}
		done(err)
	}, nil
}

// try asks an open circuit whether it may close, and if so lets attempt find
// out. attempt's own round trips pass, and nobody else's. It reports whether
// the circuit has closed.
func (c *circuit) try(attempt func() error) (closed bool) {
	done, err := c.breaker.Allow()
	if err != nil {
		return false // it is open still
	}
	c.trying.Store(true)
	err = errOpen // a panic's outcome
	defer func() {
		c.trying.Store(false)
		done(err)
	}()
	err = attempt()
	return troubleOf(err).effect == effectSuccess
}

// lastCause returns the failure that opened the circuit, about.
func (c *circuit) lastCause() error {
	if err := c.cause.Load(); err != nil {
		return *err
	}
	return errOpen
}
