package algorithms

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
)

// What a primary may be in.
var (
	errRefused   = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}         // not executed
	errLost      = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}       // maybe executed
	errWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong value") // the key's fault
)

// A sharedMemory is a Memory that answers as the limiter that all instances
// share, and can be brought into trouble.
type sharedMemory struct {
	memory *Memory

	mu      sync.Mutex
	trouble func(context.Context) error // nil: none
	calls   []Check                     // of users
	probes  []time.Time
	told    []Check // backfills
}

func (s *sharedMemory) Allow(ctx context.Context, checks []Check) error {
	switch trouble := s.note(checks); {
	case trouble == nil:
	default:
		if err := trouble(ctx); err != nil {
			return err
		}
	}
	relabel(checks, Shared, Local)
	err := s.memory.Allow(ctx, checks)
	relabel(checks, Local, Shared)
	return err
}

func (s *sharedMemory) note(checks []Check) (trouble func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case checks[0].Policy == "penstock~probe":
		s.probes = append(s.probes, time.Now())
	case checks[0].Op == backfill:
		s.told = append(s.told, checks...)
	default:
		s.calls = append(s.calls, checks...)
	}
	return s.trouble
}

// relabel makes one limiter's answers and receipts another's.
func relabel(checks []Check, from, to Source) {
	for i := range checks {
		d := &checks[i].Decision
		if d.Source == from {
			d.Source = to
		}
		if d.Receipt.source == from {
			d.Receipt.source = to
		}
	}
}

// fails makes every call fail with err; nil ends that.
func (s *sharedMemory) fails(err error) {
	s.troubled(func(context.Context) error { return err })
}

func (s *sharedMemory) hangs() { s.troubled(hang) }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *sharedMemory) troubled(f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = f
}

// asked returns how many checks of users, and how many probes, have come so far.
func (s *sharedMemory) asked() (users, probes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls), len(s.probes)
}

func (s *sharedMemory) probedAt() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.probes)
}

func (s *sharedMemory) toldSoFar() []Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// A world is a Fallback between two Memories, in a synctest bubble.
type world struct {
	*Fallback
	t         *testing.T
	shared    *sharedMemory
	secondary *Memory

	mu     sync.Mutex
	events []Event
}

func newWorld(t *testing.T, o *FallbackOptions) *world {
	t.Helper()
	w := &world{t: t, shared: &sharedMemory{memory: newClosedMemory(t)}, secondary: newClosedMemory(t)}
	w.start(w.shared, o)
	return w
}

// start begins the Fallback over a primary, which ends with the test.
func (w *world) start(primary Limiter, o *FallbackOptions) {
	w.t.Helper()
	options := FallbackOptions{}
	if o != nil {
		options = *o
	}
	options.Observe = func(e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	f, err := NewFallback(primary, w.secondary, &options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Fallback = f
	w.t.Cleanup(func() { _ = f.Close() })
}

// newClosedMemory returns a Memory that ends with the test. It is not swept:
// what a trace reads must not depend on when that happens.
func newClosedMemory(t *testing.T) *Memory {
	t.Helper()
	m, err := NewMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	return m
}

func (w *world) kinds() (kinds []EventKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
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
		w.take("usr=trip", FixedWindow(1_000, time.Hour), 1)
	}
	if !w.Stats().Open {
		w.t.Fatal("the circuit is closed after five failures in a row")
	}
}

// recovers ends the trouble, and waits until the circuit is closed.
func (w *world) recovers() {
	w.t.Helper()
	w.shared.fails(nil)
	time.Sleep(defaultOpenFor + 2*time.Second)
	if w.Stats().Open {
		w.t.Fatal("the circuit is open 32 s after it opened, though the primary is back")
	}
}

// take takes units, and returns the decision.
func (w *world) take(key string, l Limit, units int64) Decision {
	w.t.Helper()
	return takeOf(w.t, w.Fallback, key, l, units)
}

func takeOf(t *testing.T, l Limiter, key string, limit Limit, units int64) Decision {
	t.Helper()
	d, err := one(context.Background(), l, Check{Key: key, Limit: limit, Cost: units})
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return d
}

// used returns what a Memory holds against a key.
func used(t *testing.T, m *Memory, key string, l Limit) int64 {
	t.Helper()
	return l.burst - takeOf(t, m, key, l, 0).Remaining
}

// localUse returns what the secondary holds against a key.
func (w *world) localUse(key string, l Limit) int64 {
	w.t.Helper()
	return used(w.t, w.secondary, key, w.portion().of(l))
}

// everyAlgorithm has one limit of each algorithm: so many requests per window.
func everyAlgorithm(requests int64, window time.Duration) []Limit {
	return []Limit{
		TokenBucket(requests, window), LeakyBucket(requests, window), SlidingWindowCounter(requests, window),
		SlidingWindowLog(requests, window), FixedWindow(requests, window),
	}
}
