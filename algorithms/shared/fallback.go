// The fallback: it answers a call while Redis cannot.
//
// It asks the primary, which is the limiter that all instances share. If the
// primary fails, each check's FailureMode decides. FailLocal lets the memory of
// this process answer, FailOpen lets the request pass, and a FailClosed take
// refuses the call with ErrUnavailable.
//
//	| file                | subject                                          |
//	|---------------------|--------------------------------------------------|
//	| fallback_circuit.go | when the primary is bypassed                     |
//	| fallback_local.go   | calls that the memory answers                    |
//	| fallback_ledger.go  | units that were admitted without the primary     |
//	| fallback_tend.go    | the goroutine: beats, probes and hand-backs      |
//
// The bound. The memory admits only a share of each limit: of N live instances,
// one Nth. It starts with the use of a key that the primary last reported. When
// the primary is back, it receives the units that the memory has admitted and
// still holds. It charges as many as fit, as of then. So an outage is no second
// quota for a client that has spent the first.
//
// In a time T, a limit of R per W with burst B admits B + R·T/W to a key (a
// fixed window admits R in each of the clock's windows). N instances together
// admit at most
//
//	B + R·T/W + k·B  through a primary that lost its data k times, and
//	B + R·U/W + N    locally, if some instance was without it for a time U,
//
// and the charges within the replication lag of each failover. The second line
// is in addition only if the primary could not receive the units, or others had
// used them before it did. Locally, limits of windows are buckets, except fixed
// windows of a single instance. A cost above a share's burst is admitted when
// no unit is in use, so at first each instance admits one.
//
// Example: 60 per minute, burst 60, 3 instances, and an outage of 2 minutes, in
// which no data is lost. Through Redis, 60 + 60·T/W pass. Locally, each
// instance admits at most 20 at once and 20 per minute: 3·20 + 3·20·2 = 180 =
// 60 + 60·2, and at most 3 more by rounding up.
//
// Seen use. The memory starts with the use that the primary last reported of a
// key. A table keeps it for keys that the primary denied, and for keys that
// have spent half of their burst. The table takes 2 MiB. It has 65 536 places
// in pairs, and a key may have either place of one pair. Of 10 000 such keys,
// about 1 % are forgotten because others came to both places; of 65 536 keys, a
// quarter.
//
// An entry says how many units were in use at an instant, and when none will
// be. In between, units of buckets and sliding windows are assumed to come back
// evenly. Windows of the clock keep their units until they turn.

package shared

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A primary is the limiter that all instances share. Its allow keeps a
// deadline, reports its round trips to the circuit, and returns when its
// context ends.
type primary interface {
	layer

	// ready returns nil if the primary can decide, and otherwise the reason.
	ready(ctx context.Context) error

	// beat makes an instance known. It returns how many instances are live.
	beat(ctx context.Context, id string) (live int64, err error)

	// retire makes an instance unknown again.
	retire(ctx context.Context, id string) error
}

// A fallback decides calls without the primary while the primary is in trouble.
// Every call ends within about the deadline, or twice that if it waits behind
// others, and at once while the circuit is open.
//
// It starts one goroutine, which close ends.
type fallback struct {
	primary primary
	memory  algorithms.Limiter
	circuit *circuit
	report  *report

	deadline time.Duration
	now      func() int64 // µs; for the instants of seen and owed
	percent  int64        // the share of this process; 0: one Nth for N instances

	id         string       // of this process among the live instances
	instances  atomic.Int64 // live, as far as this process knows
	fewerSince time.Time    // since when beats have counted fewer instances; only the goroutine uses it
	opened     [3]uint64    // checks decided locally and passed, and calls refused, when the circuit opened; the breaker's lock guards it

	seen  *seenTable
	owed  *ledger
	stats struct{ local, passed, refused, handedBack, lost atomic.Uint64 }

	closing context.Context
	cancel  context.CancelFunc
	tending sync.WaitGroup
}

// newFallback returns a fallback from p to memory. The options are valid and
// have their defaults.
func newFallback(p primary, memory algorithms.Limiter, c *circuit, o *Options, r *report) *fallback {
	f := &fallback{
		primary: p, memory: memory, circuit: c, report: r,
		deadline: o.Deadline, percent: int64(o.Share),
		now:  func() int64 { return time.Now().UnixMicro() },
		id:   fmt.Sprintf("%016x", rand.Uint64()),
		seen: new(seenTable), owed: newLedger(),
	}
	if o.Now != nil {
		f.now = func() int64 { return o.Now().UnixMicro() }
	}
	f.instances.Store(int64(max(1, o.Instances)))
	c.turning = f.turned
	f.closing, f.cancel = context.WithCancel(context.Background())
	f.tending.Go(f.tend)
	return f
}

// allow implements layer. Errors wrap ErrUnavailable, are the context's, or are
// about a clock that is out of bounds.
func (f *fallback) allow(ctx context.Context, c *call) error {
	if c.settles() {
		return f.settle(ctx, c)
	}
	cause := f.ask(ctx, c)
	if cause == nil {
		f.seen.note(c, f.now)
		return nil
	}
	if err := callersFault(ctx, cause); err != nil {
		return err
	}
	return f.decide(ctx, c, cause)
}

// ask asks the primary, unless the circuit is open.
func (f *fallback) ask(ctx context.Context, c *call) error {
	if f.circuit.open.Load() {
		return errOpen
	}
	return f.primary.allow(ctx, c)
}

// callersFault returns the error that ends a call, if the call failed with err
// because of its caller. It returns nil if the caller is not the reason.
func callersFault(ctx context.Context, err error) error {
	if errors.Is(err, algorithms.ErrInvalid) {
		return err
	}
	return ctx.Err()
}

// share returns the part of a limit that this process admits alone.
func (f *fallback) share(whole *step.Limit) step.Limit {
	if f.percent > 0 {
		return whole.Share(f.percent, 100)
	}
	return whole.Share(1, f.instances.Load())
}

// ready returns nil if the primary can decide, and otherwise the reason. It
// asks nothing while the circuit is open.
func (f *fallback) ready(ctx context.Context) (err error) {
	if f.circuit.open.Load() {
		err = notReady(f.circuit.lastCause())
	} else {
		err = f.primary.ready(ctx)
	}
	if err != nil {
		f.report.await(ctx)
	}
	return err
}

// refuse returns the error of a call that is refused because of cause, once the
// log has the cause.
func (f *fallback) refuse(ctx context.Context, cause error) error {
	f.report.await(ctx)
	if errors.Is(cause, algorithms.ErrUnavailable) {
		return fmt.Errorf("shared: %w", cause)
	}
	return fmt.Errorf("shared: %w: %w", algorithms.ErrUnavailable, cause)
}

// close ends the goroutine and waits for it. The fallback goes on deciding, but
// the circuit no longer closes.
func (f *fallback) close() {
	f.cancel()
	f.tending.Wait()
	f.circuit.pulse.close()
	f.report.await(context.Background())
}

func (f *fallback) addStats(s *algorithms.Stats) {
	b := &s.Fallback
	b.Open, b.Trips, b.Instances = f.circuit.open.Load(), f.circuit.trips.Load(), int(f.instances.Load())
	s.Changes = f.circuit.changes()
	b.Local, b.Passed, b.Refused = f.stats.local.Load(), f.stats.passed.Load(), f.stats.refused.Load()
	b.Owed, b.HandedBack, b.Lost = f.owed.len(), f.stats.handedBack.Load(), f.stats.lost.Load()
}
