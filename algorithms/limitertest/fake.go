// A limiter for tests of the layers that stand above the limiter of all instances.

package limitertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Fake is an [algorithms.Memory] that answers as a shared limiter. It fails or hangs when a test says so.
//
// A call is recorded, runs Before's function, fails or hangs, is decided, and runs After's function. An error ends the
// call, so it charges nothing. To lose the answer to a charge, charge Memory in Before and return an error.
//
// A Fake is safe for concurrent use. Functions may use it.
type Fake struct {
	// Memory decides and counts. Replace it to set the clock. Tests use it as another instance. Its own answers have
	// the Source Local.
	Memory *algorithms.Memory

	mu      sync.Mutex
	source  algorithms.Source
	trouble func(context.Context) error
	before  func(context.Context, []algorithms.Check) error
	after   func([]algorithms.Check)
	silent  bool
	asked   []Asked
}

// Asked is one check of a call, as the Fake received it.
type Asked struct {
	algorithms.Check
	At    time.Time // of the call, by the real clock
	Place int       // in the call, from 0: the checks with Place 0 count calls
}

// NewFake returns a Fake that answers as Shared.
func NewFake() *Fake {
	m := algorithms.NewMemory(&algorithms.MemoryOptions{Now: ExceptForSweeps(time.Now)})
	return &Fake{Memory: m, source: algorithms.Shared}
}

var _ algorithms.Limiter = (*Fake)(nil)

// Allow implements [algorithms.Limiter].
func (f *Fake) Allow(ctx context.Context, checks []algorithms.Check) error {
	source, before, trouble, after := f.record(checks)
	if before != nil {
		if err := before(ctx, checks); err != nil {
			return err
		}
	}
	if trouble != nil {
		if err := trouble(ctx); err != nil {
			return err
		}
	}
	for i := range checks {
		checks[i].Decision.Receipt = relabel(checks[i].Decision.Receipt, source, algorithms.Local)
	}
	err := f.Memory.Allow(ctx, checks)
	for i := range checks {
		d := &checks[i].Decision
		d.Receipt = relabel(d.Receipt, source, algorithms.Local)
		if d.Source == algorithms.Local {
			d.Source = source
		}
	}
	if after != nil {
		after(checks)
	}
	return err
}

// record records a call, and returns the behaviour that is set when the call arrives.
func (f *Fake) record(checks []algorithms.Check) (
	source algorithms.Source,
	before func(context.Context, []algorithms.Check) error,
	trouble func(context.Context) error,
	after func([]algorithms.Check),
) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.silent {
		at := time.Now()
		for place, c := range checks {
			// The bytes of strings are the caller's again after the call.
			c.Policy, c.Key = strings.Clone(c.Policy), strings.Clone(c.Key)
			f.asked = append(f.asked, Asked{c, at, place})
		}
	}
	return f.source, f.before, f.trouble, f.after
}

// relabel returns a receipt with two sources exchanged, so that Memory accepts receipts of the Fake as its own, and
// rejects those of another Memory.
func relabel(r algorithms.Receipt, a, b algorithms.Source) algorithms.Receipt {
	s := r.Step()
	switch {
	case s.Units == 0: // the zero Receipt has no source
	case s.Source == uint8(a):
		s.Source = uint8(b)
	case s.Source == uint8(b):
		s.Source = uint8(a)
	}
	return algorithms.ReceiptOf(s)
}

// Fail makes all calls fail with err from now on; nil ends this and Hang. A Fake
// has no local limiter: under FailLocal, requests pass.
func (f *Fake) Fail(err error) {
	if err == nil {
		f.set(func() { f.trouble = nil })
		return
	}
	f.set(func() { f.trouble = func(context.Context) error { return err } })
}

// Hang makes all calls wait from now on until their context ends, and return its error.
func (f *Fake) Hang() { f.set(func() { f.trouble = hang }) }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Before sets a function that runs before each decision; its error ends the call. nil sets none.
func (f *Fake) Before(run func(ctx context.Context, checks []algorithms.Check) error) {
	f.set(func() { f.before = run })
}

// After sets a function that runs after each decision, also after Memory's errors, and may change it; nil sets none.
func (f *Fake) After(run func(checks []algorithms.Check)) { f.set(func() { f.after = run }) }

// As sets the Source of the answers.
func (f *Fake) As(source algorithms.Source) { f.set(func() { f.source = source }) }

// Silence ends recording, for benchmarks.
func (f *Fake) Silence() { f.set(func() { f.silent, f.asked = true, nil }) }

// Asked returns the checks so far, in the order in which they came.
func (f *Fake) Asked() []Asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// Drain is Asked, and forgets the checks that it returns.
func (f *Fake) Drain() []Asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
