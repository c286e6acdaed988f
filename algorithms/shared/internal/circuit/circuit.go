// Package circuit says whether calls ask a master or bypass it. One server has one circuit,
// and each master of a Cluster has its own.
//
// A circuit counts round trips, and a round trip may carry many calls: one lost
// batch is one failure. Faults of a caller or of one key do not count, such as a
// client that hung up, a deadline of the caller's own, or a key of another type.
// The limiter's own probes and hand-backs do not count, either.
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
// Own lateness. On a busy machine a goroutine may wait for its turn for longer
// than a deadline. Then a batch expires though Redis has answered it in time. So
// if the timer of a batch fires more than 10 ms late, its expiry is excused: it
// does not count. A process that is always late must find out that Redis is
// gone, too. So once all expiries have been late for a second, they count.
//
// Probes come 0.25 s after the circuit has opened, 0.5 s after that, and then
// every second, each up to a tenth earlier so that instances do not probe
// together.
package circuit

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	// TripAfter failures in a row open a circuit.
	TripAfter      = 5
	tripPercent    = 50 // failures, of at least tripMinimum round trips
	tripMinimum    = 20
	tripPeriod     = 10 * time.Second
	tripBuckets    = 10 // the parts by which tripPeriod moves on
	tripsDeadlines = 2

	// FirstPause is the pause before the first probe, and SteadyPause that before the third and later ones.
	FirstPause  = 250 * time.Millisecond
	SteadyPause = time.Second

	punctual   = 10_000    // µs: a timer that fires later is late
	excusedFor = 1_000_000 // µs: late expiries count if all have been late for so long
)

// Circuits are the circuits of all masters.
type Circuits struct {
	Deadline time.Duration // of round trips

	// Turned is called when a circuit opens or closes, before a call can find it
	// so. It must not block. It calls Set. Nil: no fallback asks.
	Turned func(c *Circuit, open bool)

	Trips atomic.Uint64 // how often a circuit has opened
	open  atomic.Pointer[[]*Circuit]
}

// New returns circuits, none of them yet.
func New(deadline time.Duration) *Circuits {
	cs := &Circuits{Deadline: deadline}
	cs.open.Store(new([]*Circuit))
	return cs
}

// A Circuit decides whether calls ask one master.
type Circuit struct {
	all     *Circuits
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	open    atomic.Bool           // not closed
	trying  atomic.Bool           // it lets calls of the limiter itself pass
	cause   atomic.Pointer[error] // the latest failure; usually it has opened the circuit

	// Guarded by the breaker's own lock: since when all round trips have failed,
	// and since when some have.
	allSince, someSince time.Time

	excused             atomic.Int64 // expiries since the circuit opened last
	mu                  sync.Mutex   // guards the fields below
	lateSince, lateLast int64        // µs, monotonic: the first and the last of the latest expiries, if all of them were late
}

// Add returns a new circuit, which is closed.
func (cs *Circuits) Add() *Circuit {
	c := &Circuit{all: cs}
	c.cause.Store(&trouble.ErrOpen)
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      tripPeriod,
		BucketPeriod:  tripPeriod / tripBuckets,
		Timeout:       FirstPause - FirstPause/10, // the least pause
		MaxRequests:   1,
		ReadyToTrip:   c.trip,
		IsSuccessful:  func(err error) bool { return trouble.Of(err).Effect == trouble.Success },
		IsExcluded:    func(err error) bool { return trouble.Of(err).Effect == trouble.None },
		OnStateChange: c.changed,
	})
	return c
}

// OpenNow returns the circuits that are open. Nobody may change the slice.
func (cs *Circuits) OpenNow() []*Circuit { return *cs.open.Load() }

// AnyOpen reports whether any circuit is open.
func (cs *Circuits) AnyOpen() bool { return len(cs.OpenNow()) > 0 }

// Cause returns the latest failure, which usually has opened the circuit.
func (c *Circuit) Cause() error { return *c.cause.Load() }

// TakeExcused returns how many expiries were excused since it was called last.
func (c *Circuit) TakeExcused() int64 { return c.excused.Swap(0) }

// changed runs under the breaker's lock, so it must not block.
func (c *Circuit) changed(_ string, from, to gobreaker.State) {
	open := to != gobreaker.StateClosed
	if open == (from != gobreaker.StateClosed) {
		return // between open and half-open
	}
	if open {
		c.all.Trips.Add(1)
	}
	if c.all.Turned != nil {
		c.all.Turned(c, open)
	}
	c.open.Store(open)
}

// Set notes that a circuit is open, or that it is not. It returns how many are. Only one call may run at a time.
func (cs *Circuits) Set(c *Circuit, open bool) (openNow int) {
	all := slices.DeleteFunc(slices.Clone(cs.OpenNow()), func(other *Circuit) bool { return other == c })
	if open {
		all = append(all, c)
	}
	cs.open.Store(&all)
	return len(all)
}

// trip decides, after a failure, whether to open. It runs under the breaker's
// lock.
func (c *Circuit) trip(n gobreaker.Counts) bool {
	now, lasting := time.Now(), tripsDeadlines*c.all.Deadline
	if n.ConsecutiveFailures <= 1 {
		c.allSince = now
	}
	if n.TotalFailures <= 1 {
		c.someSince = now
	}
	if n.ConsecutiveFailures >= TripAfter && now.Sub(c.allSince) >= lasting {
		return true
	}
	answered := n.TotalFailures + n.TotalSuccesses
	return answered >= tripMinimum && n.TotalFailures*100 >= answered*tripPercent && now.Sub(c.someSince) >= lasting
}

// Stops reports whether the circuit keeps a call from its master. ours says
// that the limiter itself makes the call.
func (c *Circuit) Stops(ours bool) bool { return c.open.Load() && !(ours && c.trying.Load()) }

// Begin begins a round trip. The caller must pass its outcome to end, once. An
// error means that the round trip must not be made.
func (c *Circuit) Begin() (end func(outcome error), err error) {
	if c.open.Load() {
		return nil, trouble.ErrOpen // the breaker would let a call try
	}
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, trouble.ErrOpen
	}
	return func(outcome error) {
		if trouble.Of(outcome).Effect == trouble.Failure {
			c.cause.Store(&outcome)
		}
		done(outcome)
	}, nil
}

// Excuses reports whether this process is to blame for an expiry, whose timer was
// due at an instant and has fired now: see the head of this file.
func (c *Circuit) Excuses(due, now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now-due <= punctual {
		c.lateLast = 0
		return false
	}
	if c.lateLast == 0 || now-c.lateLast > excusedFor {
		c.lateSince = now
	}
	c.lateLast = now
	if now-c.lateSince >= excusedFor {
		return false
	}
	c.excused.Add(1)
	return true
}

// Pause returns how long to wait before the n-th probe, from 0.
func Pause(n int) time.Duration {
	p := min(FirstPause<<min(n, 2), SteadyPause)
	return p - rand.N(p/10)
}

// Try closes the circuit if attempt succeeds, and reports whether it did. Calls of
// the limiter itself pass while it runs.
func (c *Circuit) Try(attempt func() error) (closed bool) {
	done, err := c.breaker.Allow()
	if err != nil {
		return false // too early
	}
	c.trying.Store(true)
	err = trouble.ErrOpen // the outcome of a panic
	defer func() {
		c.trying.Store(false)
		done(err)
	}()
	err = attempt()
	return trouble.Of(err).Effect == trouble.Success
}
