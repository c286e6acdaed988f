// The fallback: it answers a call while Redis cannot.
//
//	call ─> primary ── answered ───────────────────────────────────> done
//	           │
//	           │ circuit open, no answer in time, or an error
//	           v
//	        decide ─┬─ a FailClosed take ──────────────────────────> refused
//	                ├─ a FailLocal take that Redis denied before ──> denied
//	                └─ otherwise the memory decides FailLocal ─────> done
//	                   checks, and FailOpen checks pass
//	                      │
//	                      │ units that Redis has certainly not charged
//	                      v
//	                   ledger ── each second, and before a circuit closes ──> primary
//
// It asks the primary, which is the limiter that all instances share. If the
// primary fails, each check's FailureMode decides. FailLocal lets the memory of
// this process answer, FailOpen lets the request pass, and a FailClosed take
// refuses the call with ErrUnavailable.
//
//	| file                | subject                                          |
//	|---------------------|--------------------------------------------------|
//	| fallback_local.go   | calls that the memory answers                    |
//	| fallback_settle.go  | settlements                                      |
//	| fallback_ledger.go  | units that were admitted without the primary     |
//	| fallback_returns.go | units that came back without the primary         |
//	| fallback_tend.go    | the goroutine: beats, probes and hand-backs      |
//	| fallback_overdue.go | calls that Redis may execute later               |
//
// The bound. The memory admits only a share of each limit: of N live instances,
// one Nth. When the primary is back, it receives the units that the memory has
// admitted and that still count, and charges as many of them as fit, as of now. A
// key whose denial this process remembers stays denied until its RetryAfter. The
// share of a key that has a view begins with its part of the units in use. Other
// keys begin with a whole share.
//
// In a time T, a limit of R per W with burst B admits B + R·T/W to a key (a
// fixed window admits R in each of the clock's windows). N instances together
// admit at most
//
//	B + R·T/W + k·B  through a primary that lost its data k times, and
//	B + R·U/W + N    locally, if some instance was without it for a time U,
//
// and the charges within the replication lag of each failover. Units that the
// primary receives later count in both lines. Locally, limits of windows are
// buckets, except fixed windows of a single instance. A cost above a share's
// burst is admitted when no unit is in use, so at first each instance admits
// one.
//
// Example: 60 per minute, burst 60, 3 instances, and an outage of 2 minutes, in
// which no data is lost. Through Redis, 60 + 60·T/W pass. Locally, each
// instance admits at most 20 at once and 20 per minute: 3·20 + 3·20·2 = 180 =
// 60 + 60·2, and at most 3 more by rounding up.

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
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// A primary is the limiter that all instances share. Its allow keeps a
// deadline, reports its round trips to the circuits, and returns when its
// context ends.
type primary interface {
	layer

	// ready returns nil if the primary can decide, and otherwise the reason.
	ready(ctx context.Context) error

	// beat makes an instance known. It returns how many instances are live.
	beat(ctx context.Context, id string) (live int64, err error)

	// retire makes an instance unknown again.
	retire(ctx context.Context, id string) error

	// probeKey returns a key that begins with text and that the master of a
	// circuit has. If there is none, the circuit is not used any more.
	probeKey(c *circuit.Circuit, text string) (key string, ok bool)
}

// A fallback decides calls without the primary while the primary is in trouble.
// Every call ends within about the deadline, or twice that if it waits behind
// others or for a new connection, and at once while the circuit is open.
//
// It starts one goroutine, and one for each open circuit. close ends them. Another goroutine
// waits for each overdue call, until the client has its reply or gives up.
type fallback struct {
	primary  primary
	memory   algorithms.Limiter
	views    *views
	ledger   *ledger
	circuits *circuit.Circuits
	report   *report

	deadline time.Duration
	now      func() int64 // µs; for the instants of debts

	id         string       // of this process among the live instances
	instances  atomic.Int64 // live, as far as this process knows
	fewerSince time.Time    // since when beats have counted fewer instances; only the goroutine uses it

	stats struct {
		local, passed, refused atomic.Uint64
		unknown                atomic.Int64
	}

	closing context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex   // guards adding to tending, and opened
	opened  outageCounts // when the first open circuit opened
	tending sync.WaitGroup
}

// newFallback returns a fallback from p to memory. The options are valid and
// have their defaults.
func newFallback(p primary, memory algorithms.Limiter, cs *circuit.Circuits, vs *views, l *ledger, o *Options, r *report) *fallback {
	f := &fallback{
		primary: p, memory: memory, circuits: cs, views: vs, ledger: l, report: r,
		deadline: o.Deadline,
		id:       fmt.Sprintf("%016x", rand.Uint64()),
	}
	clock := time.Now
	if o.Now != nil {
		clock = o.Now
	}
	f.now = func() int64 { return clock().UnixMicro() }
	f.instances.Store(int64(max(1, o.Instances)))
	f.closing, f.cancel = context.WithCancel(context.Background())
	cs.Turned = f.turned
	f.tending.Go(f.tend)
	return f
}

// allow implements layer. Errors wrap ErrUnavailable, are the context's, or are
// about a clock that is out of bounds.
func (f *fallback) allow(ctx context.Context, c *call) error {
	if c.items[0].Op.Settles() {
		return f.settle(ctx, c)
	}
	cause := f.primary.allow(ctx, c)
	if cause == nil {
		return nil
	}
	err := callersFault(ctx, cause)
	if err == nil {
		err = f.decide(ctx, c, cause)
	}
	if c.settled != nil {
		admitted := err == nil && c.proceeds()
		go f.follow(c, admitted)
	}
	return err
}

// callersFault returns the error that ends a call, if the call failed with err
// because of its caller. It returns nil if the caller is not the reason.
func callersFault(ctx context.Context, err error) error {
	if errors.Is(err, algorithms.ErrInvalid) {
		return err
	}
	return ctx.Err()
}

// ready returns nil if the primary can decide, and otherwise the reason. It
// asks nothing while a circuit is open.
func (f *fallback) ready(ctx context.Context) error {
	if open := f.circuits.OpenNow(); len(open) > 0 {
		return notReady(open[0].Cause())
	}
	return f.primary.ready(ctx)
}

// refuse returns the error of a call that is refused because of cause.
func refuse(cause error) error {
	if errors.Is(cause, algorithms.ErrUnavailable) {
		return fmt.Errorf("shared: %w", cause)
	}
	return fmt.Errorf("shared: %w: %w", algorithms.ErrUnavailable, cause)
}

func (f *fallback) counts() outageCounts {
	s := &f.stats
	return outageCounts{s.local.Load(), s.passed.Load(), s.refused.Load(), f.ledger.returned.Load(), f.ledger.returnsLost.Load()}
}

// close ends the goroutines and waits for them. The fallback goes on deciding,
// but circuits no longer close.
func (f *fallback) close() {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.tending.Wait()
	f.report.close()
}

func (f *fallback) addStats(s *algorithms.Stats) {
	b := &s.Fallback
	b.Open, b.Trips, b.Instances = len(f.circuits.OpenNow()), f.circuits.Trips.Load(), int(f.instances.Load())
	b.Local, b.Passed, b.Refused = f.stats.local.Load(), f.stats.passed.Load(), f.stats.refused.Load()
	b.Unknown = f.stats.unknown.Load()
	f.ledger.addStats(s)
}
