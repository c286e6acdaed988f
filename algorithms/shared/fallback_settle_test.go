// Settlements with the primary and without.

package shared

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// settle settles one check, whose answer it returns.
func (w *world) settle(c algorithms.Check) (algorithms.Decision, error) {
	w.t.Helper()
	c.Policy = "default"
	checks := []algorithms.Check{c}
	err := w.Allow(context.Background(), checks)
	return checks[0].Decision, err
}

// A Return goes to the limiter that issued the receipt, and nowhere else. While the
// primary is away, it is kept.
func TestFallbackReturns(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			ofShared := w.take("usr=1", l, 5)
			w.trip()
			ofLocal := w.take("usr=1", l, 7)
			want := func(when string, shared, local int64) {
				t.Helper()
				if s, n := used(t, w.shared.store, "usr=1", l), w.localUse("usr=1", l); s != shared || n != local {
					t.Errorf("%v, %s: the primary holds %d and the memory %d, want %d and %d", l, when, s, n, shared, local)
				}
			}
			want("at first", 5, 7)
			d, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 5, Decision: ofShared})
			if err != nil || !d.Allowed || d.Source != algorithms.Undecided || d.Receipt.Units() != 0 || w.stats().Returns != 1 {
				t.Errorf("%v: out of reach: got %+v, %v, want it kept", l, d, err)
			}
			d, err = w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 3, Decision: ofLocal})
			if err != nil || !d.Allowed || d.Source != algorithms.Local || d.Receipt.Units() != 4 {
				t.Errorf("%v: local: got %+v, %v, want 4 left of the receipt", l, d, err)
			}
			want("in the outage", 5, 4)
			w.recovers()
			want("after it", 4, 4) // the 5 came back, and 3 of the 7, which are not owed
			ofLocal.Receipt = d.Receipt
			if d, err = w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 4, Decision: ofLocal}); err != nil || d.Source != algorithms.Local {
				t.Errorf("%v: local, afterwards: got %+v, %v", l, d, err)
			}
			want("with the local receipt returned", 4, 0)
			if got := w.stats(); got.Returns != 0 || got.Returned != 1 || got.ReturnsLost != 0 {
				t.Errorf("%v: got %+v, want one Return that came late", l, got)
			}
		})
	}
}

// Both kinds of receipts, and a force, in one call.
func TestFallbackSettlesMixedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.FixedWindow(100, 10*time.Hour)
		ofShared := w.take("usr=1", l, 5)
		w.shared.fails(errLost)
		ofLocal := w.take("usr=1", l, 7)
		w.shared.fails(nil)
		call := func() []algorithms.Check {
			return []algorithms.Check{
				{Policy: "default", Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 2, Decision: ofShared},
				{Policy: "default", Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 3, Decision: ofLocal},
				{Policy: "default", Key: "usr=2", Limit: l, Op: algorithms.Force, Cost: 4},
			}
		}
		checks := call()
		if err := w.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			source    algorithms.Source
			remaining int64
			left      int64
		}{{algorithms.Shared, 97, 3}, {algorithms.Local, 96, 4}, {algorithms.Shared, 96, 0}} {
			if d := checks[i].Decision; d.Source != want.source || d.Remaining != want.remaining || d.Receipt.Units() != want.left || !d.Allowed {
				t.Errorf("check %d: got %+v, want %+v", i, d, want)
			}
		}
		w.trip()
		checks = call()
		if err := w.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for i, want := range []algorithms.Source{algorithms.Undecided, algorithms.Local, algorithms.Local} {
			if d := checks[i].Decision; d.Source != want || !d.Allowed {
				t.Errorf("in the outage, check %d: got %+v, want it %v", i, d, want)
			}
		}
		if n := used(t, w.memory, "usr=2", l); n != 4 {
			t.Errorf("the force charged %d units locally, want 4", n)
		}
	})
}

// A take among settlements is invalid, whichever limiter settles.
func TestFallbackSettlesNoTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.trip()
		ofLocal := w.take("usr=1", hourly, 5)
		for range 2 {
			checks := []algorithms.Check{
				{Policy: "default", Key: "usr=1", Limit: hourly, Op: algorithms.Return, Cost: 5, Decision: ofLocal},
				{Policy: "default", Key: "usr=2", Limit: hourly, Cost: 1, Fail: algorithms.FailClosed},
			}
			if err := w.Allow(context.Background(), checks); !errors.Is(err, algorithms.ErrInvalid) {
				t.Errorf("open is %v: got %+v, %v, want ErrInvalid", w.stats().Open, checks, err)
			}
			w.recovers()
		}
		if n := used(t, w.shared.store, "usr=2", hourly); n != 0 {
			t.Errorf("%d units were charged by a call that is a mistake", n)
		}
		if n := w.localUse("usr=1", hourly); n != 5 {
			t.Errorf("the memory holds %d units, want the 5 that no valid call has returned", n)
		}
	})
}

// Without the primary, an operator's settlements fail, and forces are charged
// locally.
func TestFallbackSettlesWithoutThePrimary(t *testing.T) {
	l := algorithms.TokenBucket(10, time.Hour)
	receipt := func(row *step.Row, source uint8) algorithms.Receipt {
		return algorithms.ReceiptOf(step.Receipt{Units: 1, Row: row, Source: source})
	}
	tests := map[string]struct {
		check  algorithms.Check
		err    error
		source algorithms.Source
		used   int64
	}{
		"force":               {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Force, Cost: 4}, nil, algorithms.Local, 4},
		"force, closed":       {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Force, Cost: 4, Fail: algorithms.FailClosed}, nil, algorithms.Local, 4},
		"force, open":         {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Force, Cost: 4, Fail: algorithms.FailOpen}, nil, algorithms.Undecided, 0},
		"force into debt":     {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Force, Cost: 14}, nil, algorithms.Local, 10},
		"grant":               {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Grant, Cost: 4}, algorithms.ErrUnavailable, algorithms.Undecided, 0},
		"grant, open":         {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Grant, Cost: 4, Fail: algorithms.FailOpen}, algorithms.ErrUnavailable, algorithms.Undecided, 0},
		"reset":               {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Reset}, algorithms.ErrUnavailable, algorithms.Undecided, 0},
		"return of nothing":   {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 4}, nil, algorithms.Undecided, 0},
		"invalid":             {algorithms.Check{Key: "", Limit: l, Op: algorithms.Force, Cost: 4}, algorithms.ErrInvalid, algorithms.Undecided, 0},
		"invalid grant":       {algorithms.Check{Key: "usr=1", Op: algorithms.Grant, Cost: 4}, algorithms.ErrInvalid, algorithms.Undecided, 0},
		"invalid, open":       {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Force, Cost: -4, Fail: algorithms.FailOpen}, algorithms.ErrInvalid, algorithms.Undecided, 0},
		"force, nobody":       {algorithms.Check{Key: "usr=1", Limit: algorithms.Nobody(), Op: algorithms.Force, Cost: 4}, nil, algorithms.Local, 0},
		"another's receipt":   {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 1, Decision: algorithms.Decision{Receipt: receipt(step.FixedWindow, uint8(algorithms.Local))}}, algorithms.ErrInvalid, algorithms.Undecided, 0},
		"another share's":     {algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 1, Decision: algorithms.Decision{Receipt: receipt(step.TokenBucket, standIn)}}, nil, algorithms.Undecided, 0},
		"force, many units":   {algorithms.Check{Key: "usr=1", Limit: algorithms.FixedWindow(10, time.Hour), Op: algorithms.Force, Cost: 10}, nil, algorithms.Local, 10},
		"force, of a log":     {algorithms.Check{Key: "usr=1", Limit: algorithms.SlidingWindowLog(10, time.Hour), Op: algorithms.Force, Cost: 3}, nil, algorithms.Local, 3},
		"force, of a leaky":   {algorithms.Check{Key: "usr=1", Limit: algorithms.LeakyBucket(10, time.Hour), Op: algorithms.Force, Cost: 3}, nil, algorithms.Local, 3},
		"force, of a sliding": {algorithms.Check{Key: "usr=1", Limit: algorithms.SlidingWindowCounter(10, time.Hour), Op: algorithms.Force, Cost: 3}, nil, algorithms.Local, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.trip()
				d, err := w.settle(tt.check)
				if !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
					t.Fatalf("got error %v, want %v", err, tt.err)
				}
				if err == nil && (d.Source != tt.source || !d.Allowed) {
					t.Errorf("got %+v, want it %v", d, tt.source)
				}
				if tt.check.Limit.Validate() == nil && tt.check.Key != "" {
					if n := w.localUse(tt.check.Key, tt.check.Limit); n != tt.used {
						t.Errorf("%d units are in use locally, want %d", n, tt.used)
					}
				}
			})
		})
	}
}

// When one settlement of a call fails, the others are settled all the same.
func TestFallbackSettlesWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), algorithms.FixedWindow(10, time.Hour)
		w.trip()
		checks := []algorithms.Check{
			{Policy: "default", Key: "usr=1", Limit: l, Op: algorithms.Reset},
			{Policy: "default", Key: "usr=2", Limit: l, Op: algorithms.Force, Cost: 4},
		}
		if err := w.Allow(context.Background(), checks); !errors.Is(err, algorithms.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if n := used(t, w.memory, "usr=2", l); n != 4 {
			t.Errorf("the force charged %d units locally, want 4", n)
		}
	})
}
