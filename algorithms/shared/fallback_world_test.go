// The world of the fallback's tests: a primary that can be brought into trouble,
// and a fallback from it to a Memory.

package shared

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// The troubles of a primary.
var (
	errRefused   = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}         // not executed
	errLost      = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}       // maybe executed
	errWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong value") // the key's fault
)

// A stateStore is a layer that decides by the steps themselves, and so also
// backfills. It answers as the limiter that all instances share.
type stateStore struct {
	mu     sync.Mutex
	states map[step.Key]step.State
}

func newStateStore() *stateStore { return &stateStore{states: make(map[step.Key]step.State)} }

func (s *stateStore) allow(_ context.Context, c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UnixMicro()
	for _, it := range c.steps.Items {
		if it.Home == it && it.Limit.Row != step.Nobody {
			it.Held.State, it.Held.Exists = s.states[it.Key]
		}
	}
	c.steps.Decide(now, func(*step.Item) bool { return true })
	for i := range c.items {
		it := &c.items[i]
		if it.Home == &it.Item && it.Held.Dirty {
			s.states[it.Key.Clone()] = it.Held.State
		}
		it.decide(now, algorithms.Shared)
	}
	return nil
}

// A fakePrimary is a primary that can be brought into trouble. As the Redis
// layer does, it keeps a deadline and tells the circuit of its calls. It does
// not report hand-backs, so a test can let them fail and keep the circuit
// closed.
type fakePrimary struct {
	store    *Limiter // over a stateStore: what the primary holds, for tests
	circuit  *circuit
	deadline time.Duration

	mu        sync.Mutex
	trouble   func(context.Context) error // nil: none
	calls     int                         // checks of users
	probes    []time.Time
	backfills []*item

	live    int64 // instances; 0 at the start: as many as the fallback believes
	err     error // of beats
	beats   int
	retired int
}

func newFakePrimary() *fakePrimary {
	return &fakePrimary{store: over(newStateStore())}
}

func (p *fakePrimary) allow(ctx context.Context, c *call) error {
	end := func(error) {}
	if c.items[0].Op != step.Backfill {
		var err error
		if end, err = p.circuit.begin(); err != nil {
			return err
		}
	}
	outcome := errors.New("the primary panicked")
	defer func() { end(outcome) }()
	bounded, cancel := context.WithTimeout(ctx, p.deadline)
	defer cancel()
	if err := p.decide(bounded, c); err != nil && ctx.Err() != nil {
		outcome = context.Canceled // the caller's fault, whatever the error says
	} else {
		outcome = ownDeadline(err)
	}
	return outcome
}

func (p *fakePrimary) decide(ctx context.Context, c *call) error {
	if trouble := p.note(c); trouble != nil {
		if err := trouble(ctx); err != nil {
			return err
		}
	}
	return p.store.top.allow(ctx, c)
}

func (p *fakePrimary) note(c *call) (trouble func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.items[0].Key.Policy == probePolicy:
		p.probes = append(p.probes, time.Now())
	case c.items[0].Op == step.Backfill:
		for i := range c.items {
			it := c.items[i]
			p.backfills = append(p.backfills, &it)
		}
	default:
		p.calls += len(c.items)
	}
	return p.trouble
}

func (p *fakePrimary) ready(context.Context) error { return nil }

func (p *fakePrimary) beat(context.Context, string) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats++
	return p.live, p.err
}

func (p *fakePrimary) retire(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired++
	return nil
}

// counts sets what beats answer. It returns how many there have been.
func (p *fakePrimary) counts(live int64, err error) (beats int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live, p.err = live, err
	return p.beats
}

// fails makes every call fail with err; nil ends that.
func (p *fakePrimary) fails(err error) {
	p.troubled(func(context.Context) error { return err })
}

func (p *fakePrimary) hangs() { p.troubled(hang) }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (p *fakePrimary) troubled(f func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = f
}

// asked returns how many checks of users, and how many probes, have come so far.
func (p *fakePrimary) asked() (users, probes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, len(p.probes)
}

func (p *fakePrimary) probedAt() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.probes)
}

func (p *fakePrimary) backfilled() []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.backfills)
}

// The messages of the log when the circuit opens and closes.
const (
	logUnavailable = logPrefix + "Redis unavailable"
	logAvailable   = logPrefix + "Redis available"
)

// A world is a Limiter of a fallback alone, from a fakePrimary to a Memory, for
// a synctest bubble.
type world struct {
	*Limiter
	t      *testing.T
	shared *fakePrimary
	log    *logRecords
	memory algorithms.Limiter
}

func newWorld(t *testing.T, o *Options) *world {
	t.Helper()
	w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
	w.start(w.shared, o)
	return w
}

// start begins the fallback from p, which is w.shared or a layer over it, to the
// memory. It ends with the test.
func (w *world) start(p primary, o *Options) {
	w.t.Helper()
	w.log = new(logRecords)
	options := o.withDefaults()
	options.Logger = w.log.logger()
	if err := options.validate(); err != nil {
		w.t.Fatal(err)
	}
	c, r := newCircuit(options.Deadline), newReport(options.Logger)
	w.shared.circuit, w.shared.deadline = c, options.Deadline
	if w.shared.live == 0 {
		w.shared.live = int64(options.Instances)
	}
	f := newFallback(p, w.memory, c, &options, r)
	w.Limiter = &Limiter{top: f, fallback: f, report: r}
	w.t.Cleanup(f.close)
}

// newMemory returns a Memory whose results do not depend on when it sweeps.
func newMemory() *algorithms.Memory {
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: time.Now})
}

// A fallbackStats is the fallback's part of the Stats.
type fallbackStats = struct {
	Open       bool
	Trips      uint64
	Instances  int
	Local      uint64
	Passed     uint64
	Refused    uint64
	Owed       int
	HandedBack uint64
	Lost       uint64
}

// stats returns the fallback's part of the Stats.
func (w *world) stats() fallbackStats {
	var s algorithms.Stats
	w.fallback.addStats(&s)
	return s.Fallback
}

// trip opens the circuit, by calls of a key of its own, and leaves the primary
// refusing all calls. It takes twice the default deadline.
func (w *world) trip() {
	w.t.Helper()
	w.shared.fails(errRefused)
	for i := range tripAfter {
		if i > 0 {
			time.Sleep(tripsDeadlines * defaultDeadline / (tripAfter - 1))
		}
		w.take("usr=trip", algorithms.FixedWindow(1_000, time.Hour), 1)
	}
	if !w.stats().Open {
		w.t.Fatal("the circuit is closed after five failures in a row")
	}
}

// recoversWithin is how soon the circuit closes once the primary is back, unless
// it has opened again too soon.
const recoversWithin = 2 * time.Second

// recovers ends the trouble, and waits until the circuit is closed.
func (w *world) recovers() {
	w.t.Helper()
	w.shared.fails(nil)
	time.Sleep(recoversWithin)
	if w.stats().Open {
		w.t.Fatal("the circuit is open 2 s after the primary was back")
	}
}

// take takes units, and returns the decision.
func (w *world) take(key string, l algorithms.Limit, units int64) algorithms.Decision {
	w.t.Helper()
	return take(w.t, w.Limiter, key, l, units)
}

// used returns what a limiter holds against a key.
func used(t *testing.T, l algorithms.Limiter, key string, limit algorithms.Limit) int64 {
	t.Helper()
	return limit.Burst() - take(t, l, key, limit, 0).Remaining
}

// localUse returns what the memory holds against a key.
func (w *world) localUse(key string, l algorithms.Limit) int64 {
	w.t.Helper()
	return used(w.t, w.memory, key, algorithms.LimitOf(w.fallback.share(l.Step())))
}

// everyAlgorithm has one limit of each algorithm: so many requests per window.
func everyAlgorithm(requests int64, window time.Duration) []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(requests, window), algorithms.LeakyBucket(requests, window),
		algorithms.SlidingWindowCounter(requests, window), algorithms.SlidingWindowLog(requests, window),
		algorithms.FixedWindow(requests, window),
	}
}
