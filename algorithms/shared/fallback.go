package algorithms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A Fallback asks its primary, and while that cannot be asked, or does not
// answer in time, does what each check's Fail says: FailLocal lets the
// secondary answer, FailOpen lets the request pass, and any FailClosed take
// refuses the call with [ErrUnavailable].
//
// Every call ends within about the Deadline, or twice that if it waits behind
// others, and while the circuit is open at once: no connection is tried then but
// by the Fallback itself. The circuit opens when five round trips in a row fail,
// or half of at least twenty within ten seconds, and that for two deadlines at
// least. After OpenFor the Fallback writes a key of its own to the primary,
// every 100 ms for at most 1.5 s; the first that succeeds closes the circuit.
// What a caller cannot help counts for nothing: a client that hung up, its own
// deadline, a key that holds something else. One call's such error is answered
// by the secondary.
//
// The secondary admits only a share of each limit: of N live instances, 1/N.
// It starts from what the primary was last seen to hold against a key, if that
// was half of its burst or more. And when the primary is back it is told what
// the secondary has admitted and still holds against a key; so an outage of the
// primary is no second quota for who has spent the first.
//
// In a time T, a limit of R per W with burst B admits B + R·T/W to a key (a
// fixed window R in each of the clock's). N instances together admit at most
//
//	B + R·T/W + k·B  by a primary that lost its data k times, and
//	B + R·U/W + N    locally, if some instance was without it for a time U,
//
// and what is charged within the replication lag of each failover. The second
// line comes on top only as far as the primary could not be told, or had been
// used by others before it was. Limits of windows but for fixed ones of a
// single instance are buckets locally; and a cost above a share's burst is
// admitted when nothing is in use, so that at first each instance admits one.
//
// A Return goes to the limiter that issued the receipt, and is dropped if that
// is not available.
//
// A Fallback is safe for concurrent use. It starts one goroutine, which Close
// ends.
type Fallback struct {
	primary, secondary Limiter
	deadline           time.Duration
	bounded            bool // the primary keeps the deadline, and tells the circuit, by itself
	circuit            *circuit
	observe            func(Event)

	id         string       // of this process among the live instances
	fixed      portion      // zero: 1/instances
	instances  atomic.Int64 // that are live, as far as is known
	skew       atomic.Int64 // of the primary's clock to ours, in µs
	fewerSince time.Time    // there have been fewer instances than that; the goroutine's own
	seen       *sightings
	owed       *ledger
	stats      fallbackCounters

	close   sync.Once
	closing context.Context
	cancel  context.CancelFunc
	closed  chan struct{}
}

var _ Limiter = (*Fallback)(nil)

// FallbackOptions tune a [Fallback].
type FallbackOptions struct {
	// Deadline bounds every call of the primary, of a [Redis] as its Timeout does;
	// 0 means 50 ms.
	Deadline time.Duration

	// OpenFor is how long the primary is left alone once the circuit has
	// opened, less up to a tenth so that instances do not return together; 0
	// means 30 s.
	OpenFor time.Duration

	// Instances is how many instances share the primary until it can tell; 0
	// means 1. They make themselves known there, and are counted every 5 s;
	// that there are fewer is believed after 15 s.
	Instances int

	// Share, in per cent, is the part of every limit that this process admits
	// alone, instead of one part in as many as there are instances; 0 means
	// the latter.
	Share int

	// Observe, if not nil, is told what happens. It must be quick, and safe
	// for concurrent use.
	Observe func(Event)
}

const (
	defaultDeadline = 50 * time.Millisecond
	defaultOpenFor  = 30 * time.Second
	maxInstances    = 100_000
)

func (o *FallbackOptions) validate() error {
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("algorithms: "+format, args...))
	}
	if o.Deadline < 0 {
		mistake("Deadline is %v; it must not be negative", o.Deadline)
	}
	if o.OpenFor < 0 {
		mistake("OpenFor is %v; it must not be negative", o.OpenFor)
	}
	if o.Instances < 0 || o.Instances > maxInstances {
		mistake("Instances is %d; want at most %d, or 0 for 1", o.Instances, maxInstances)
	}
	if o.Share < 0 || o.Share > 100 {
		mistake("Share is %d; want per cent from 1 to 100, or 0", o.Share)
	}
	return errors.Join(errs...)
}

// A circuitUser is a primary that keeps a deadline by itself and tells a circuit
// of its round trips, which are not its calls.
type circuitUser interface {
	useCircuit(c *circuit, deadline time.Duration) error
}

// NewFallback returns a limiter that asks primary, and secondary when that is in
// trouble; nil options mean the defaults. The primary must return from Allow
// when its context ends. A [Redis] becomes this Fallback's: it takes its
// deadline, and cannot serve another. The secondary should be a [Memory]. Both
// stay the caller's to close, after the Fallback.
func NewFallback(primary, secondary Limiter, o *FallbackOptions) (*Fallback, error) {
	if o == nil {
		o = &FallbackOptions{}
	}
	err := o.validate()
	if primary == nil || secondary == nil {
		err = errors.Join(errors.New("algorithms: a Fallback needs a primary and a secondary limiter"), err)
	}
	if err != nil {
		return nil, err
	}
	openFor := cmp.Or(o.OpenFor, defaultOpenFor)
	f := &Fallback{
		primary: primary, secondary: secondary, observe: func(Event) {},
		deadline: cmp.Or(o.Deadline, defaultDeadline),
		id:       fmt.Sprintf("%016x", rand.Uint64()),
		seen:     newSightings(), owed: newLedger(),
		closed: make(chan struct{}),
	}
	if o.Observe != nil {
		f.observe = classified(o.Observe)
	}
	if o.Share > 0 {
		f.fixed = portion{int64(o.Share), 100}
	}
	f.instances.Store(int64(max(1, o.Instances)))
	f.circuit = newCircuit(f.deadline, openFor-rand.N(openFor/10+1))
	if p, ok := primary.(circuitUser); ok {
		if err := p.useCircuit(f.circuit, f.deadline); err != nil {
			return nil, err
		}
		f.bounded = true
	}
	f.closing, f.cancel = context.WithCancel(context.Background())
	go f.tend()
	return f, nil
}

// Allow implements [Limiter]. It returns no errors but those that wrap
// [ErrInvalid] or [ErrUnavailable], and the context's if that has ended.
func (f *Fallback) Allow(ctx context.Context, checks []Check) error {
	if len(checks) == 0 {
		return ctx.Err()
	}
	if checks[0].Op.settles() {
		return f.settle(ctx, checks)
	}
	err := f.ask(ctx, checks)
	if err == nil {
		f.seen.note(checks)
		return nil
	}
	if errors.Is(err, ErrInvalid) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.decide(ctx, checks, err)
}

// ask asks the primary, unless the circuit is open.
func (f *Fallback) ask(ctx context.Context, checks []Check) error {
	if f.circuit.open.Load() {
		return errOpen
	}
	if f.bounded {
		return f.primary.Allow(ctx, checks)
	}
	end, err := f.circuit.begin()
	if err != nil {
		return err
	}
	outcome := errPanic
	defer func() { end(outcome) }()
	outcome = f.askWithin(ctx, f.deadline, checks)
	return outcome
}

// askWithin asks the primary for so long. That it has not answered by then is
// the primary's fault; how a call ends that its caller gives up says nothing.
func (f *Fallback) askWithin(ctx context.Context, d time.Duration, checks []Check) error {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := f.primary.Allow(bounded, checks)
	if err != nil && ctx.Err() != nil {
		return context.Canceled
	}
	return ownDeadline(err)
}

var errPanic = errors.New("the limiter panicked")

// share returns the part of limits that is this process's while it is alone.
func (f *Fallback) portion() portion {
	if f.fixed != (portion{}) {
		return f.fixed
	}
	return portion{1, f.instances.Load()}
}

// FallbackStats are counts of checks since the start, but for those that say
// otherwise.
type FallbackStats struct {
	Open      bool   // whether the circuit is open now
	Trips     uint64 // how often it has opened
	Instances int    // that are live now, as far as is known

	Local   uint64 // that the secondary decided
	Passed  uint64 // that nobody decided, and whose requests passed
	Refused uint64 // calls that failed closed

	Owed       int    // keys of which the primary is to be told
	HandedBack uint64 // units that it was told of
	Lost       uint64 // units that it could not be told of
}

type fallbackCounters struct{ local, passed, refused, handedBack, lost atomic.Uint64 }

// Stats returns what has happened so far.
func (f *Fallback) Stats() FallbackStats {
	return FallbackStats{
		Open: f.circuit.open.Load(), Trips: f.circuit.trips.Load(), Instances: int(f.instances.Load()),
		Local: f.stats.local.Load(), Passed: f.stats.passed.Load(), Refused: f.stats.refused.Load(),
		Owed: f.owed.len(), HandedBack: f.stats.handedBack.Load(), Lost: f.stats.lost.Load(),
	}
}

// Ready returns nil if the primary can decide, else why not: at start, a mistake
// in its configuration shows here. While the circuit is open it does not ask; a
// primary that cannot tell is ready while it is closed.
func (f *Fallback) Ready(ctx context.Context) error {
	if f.circuit.open.Load() {
		return f.circuit.lastCause()
	}
	if p, ok := f.primary.(interface{ Ready(context.Context) error }); ok {
		return p.Ready(ctx)
	}
	return nil
}

// Close ends the goroutine of the Fallback, and waits for it. It goes on
// deciding, but does not recover any more. Close may be called more than once.
func (f *Fallback) Close() error {
	f.close.Do(f.cancel)
	<-f.closed
	return nil
}
