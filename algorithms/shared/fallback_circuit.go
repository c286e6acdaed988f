// The circuit: whether the limiter asks the primary or bypasses it.
//
// It counts round trips, and a round trip may carry many calls: one lost batch
// is one failure. Faults of a caller or of one key do not count, such as a
// client that hung up, a deadline of the caller's own, or a key of another
// type.
//
//	| from   | to     | when                                                     |
//	|--------|--------|----------------------------------------------------------|
//	| closed | open   | 5 round trips in a row failed, or half of at least 20    |
//	|        |        | within 10 s, and failures have lasted for two deadlines  |
//	| open   | closed | a probe succeeds                                         |
//
// Failures must last for two deadlines, because one hiccup fails many round
// trips at once. Example: with 50 ms deadlines, eight batches in flight fail
// together at t = 50 ms. That is more than five, but the first failure is 0 ms
// old. The next failures at t = 150 ms open the circuit.
//
// Probes come 0.25 s after the circuit has opened, 0.5 s after that, and then
// every second, each up to a tenth earlier so that instances do not probe
// together. A circuit that opens again within 10 s doubles these pauses, up to
// 30 s: its probes are faster than the batches of its callers, and would close
// it in vain.

package shared

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/penstock-go/penstock/algorithms"
)

// errOpen is the error of a round trip that the circuit prevents. Nothing was
// sent.
var errOpen = fmt.Errorf("the circuit is open: %w", algorithms.ErrUnavailable)

const (
	tripAfter      = 5  // failures in a row
	tripPercent    = 50 // failures, of at least tripMinimum round trips
	tripMinimum    = 20
	tripPeriod     = 10 * time.Second
	tripBuckets    = 10 // the parts by which tripPeriod moves on
	tripsDeadlines = 2

	firstPause  = 250 * time.Millisecond
	steadyPause = time.Second
	maxPause    = 30 * time.Second
	steadyAfter = 10 * time.Second // a circuit that has been closed for so long begins with short pauses
)

// A circuit decides whether calls ask the primary.
type circuit struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	open    atomic.Bool     // not closed
	trying  atomic.Bool     // round trips of try pass, and do not count
	turning func(open bool) // nil: none; must not block; runs before a call can find the circuit so
	tripped chan struct{}   // holds one: wakes the goroutine of the fallback
	trips   atomic.Uint64
	cause   atomic.Pointer[error] // of the last failure

	history struct {
		sync.Mutex
		all []algorithms.CircuitChange // the latest
	}

	// Guarded by the breaker's own lock: since when all round trips have failed,
	// and since when some have.
	allSince, someSince time.Time

	pulse      pulse
	mu         sync.Mutex // guards suspicions
	suspicions []*suspicion

	// Only the goroutine of the fallback uses these.
	closed time.Time // when the circuit closed last
	hasty  int       // how often it has opened again too soon
}

// newCircuit returns a circuit for round trips that may take a deadline.
func newCircuit(deadline time.Duration) *circuit {
	c := &circuit{tripped: make(chan struct{}, 1)}
	c.cause.Store(&errOpen)
	c.pulse.each = c.sweep
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      tripPeriod,
		BucketPeriod:  tripPeriod / tripBuckets,
		Timeout:       firstPause - firstPause/10, // the least pause
		MaxRequests:   1,
		ReadyToTrip:   func(n gobreaker.Counts) bool { return c.trip(n, tripsDeadlines*deadline) },
		IsSuccessful:  func(err error) bool { return troubleOf(err).effect == effectSuccess },
		IsExcluded:    func(err error) bool { return troubleOf(err).effect == effectNone },
		OnStateChange: func(_ string, from, to gobreaker.State) { c.changed(from, to) },
	})
	return c
}

// changed runs under the breaker's lock, so it must not block.
func (c *circuit) changed(from, to gobreaker.State) {
	if c.turning != nil && (from == gobreaker.StateClosed || to == gobreaker.StateClosed) {
		c.turning(from == gobreaker.StateClosed)
	}
	c.open.Store(to != gobreaker.StateClosed)
	if to == gobreaker.StateClosed {
		c.note(algorithms.CircuitChange{At: time.Now()})
	}
	if from != gobreaker.StateClosed {
		return
	}
	c.trips.Add(1)
	c.note(algorithms.CircuitChange{At: time.Now(), Open: true, Reason: Reason(c.lastCause())})
	select {
	case c.tripped <- struct{}{}:
	default:
	}
}

const maxChanges = 16 // that operators see

func (c *circuit) note(change algorithms.CircuitChange) {
	h := &c.history
	h.Lock()
	defer h.Unlock()
	h.all = append(h.all[max(0, len(h.all)-maxChanges+1):], change)
}

// changes returns the latest changes, oldest first.
func (c *circuit) changes() []algorithms.CircuitChange {
	h := &c.history
	h.Lock()
	defer h.Unlock()
	return slices.Clone(h.all)
}

// trip decides, after a failure, whether to open. It runs under the breaker's
// lock.
func (c *circuit) trip(n gobreaker.Counts, lasting time.Duration) bool {
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

// begin begins a round trip. The caller must pass its outcome to end, once. An
// error means that the round trip must not be made.
func (c *circuit) begin() (end func(outcome error), err error) {
	if c.trying.Load() {
		return func(error) {}, nil
	}
	if c.open.Load() {
		return nil, errOpen // the breaker would let a call try
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, errOpen
	}
	return func(outcome error) {
		if troubleOf(outcome).effect == effectFailure {
			c.cause.Store(&outcome)
		}
		done(outcome)
	}, nil
}

// opened notes that the circuit has opened. The pauses between probes are
// longer if it was closed only briefly.
func (c *circuit) opened() {
	if !c.closed.IsZero() && time.Since(c.closed) < steadyAfter {
		c.hasty++
	} else {
		c.hasty = 0
	}
}

// pause returns how long to wait before the n-th probe, from 0.
func (c *circuit) pause(n int) time.Duration {
	pause := min(firstPause<<min(n, 2), steadyPause)
	for range c.hasty {
		pause = min(2*pause, maxPause)
	}
	return pause - rand.N(pause/10)
}

// try runs attempt if an open circuit may close, and closes it if attempt
// succeeds. Only attempt's own round trips pass while it runs. try reports
// whether the circuit has closed.
func (c *circuit) try(attempt func() error) (closed bool) {
	done, err := c.breaker.Allow()
	if err != nil {
		return false // too early
	}
	c.trying.Store(true)
	err = errOpen // the outcome of a panic
	defer func() {
		c.trying.Store(false)
		done(err)
	}()
	if err = attempt(); troubleOf(err).effect != effectSuccess {
		return false
	}
	c.closed = time.Now()
	return true
}

// lastCause returns the latest failure, which is usually the failure that
// opened the circuit.
func (c *circuit) lastCause() error { return *c.cause.Load() }
