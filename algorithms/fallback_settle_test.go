package algorithms

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// settle settles one check, whose answer it returns.
func (w *world) settle(c Check) (Decision, error) {
	w.t.Helper()
	c.Policy = DefaultPolicy
	checks := []Check{c}
	err := w.Allow(context.Background(), checks)
	return checks[0].Decision, err
}

// A Return goes to the limiter that issued the receipt, and nowhere else.
func TestFallbackReturns(t *testing.T) {
	for _, l := range everyAlgorithm(100, 10*time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			ofShared := w.take("usr=1", l, 5)
			w.trip()
			ofLocal := w.take("usr=1", l, 7)
			want := func(when string, shared, local int64) {
				t.Helper()
				if s, n := used(t, w.shared.memory, "usr=1", l), w.localUse("usr=1", l); s != shared || n != local {
					t.Errorf("%v, %s: the primary holds %d and the secondary %d, want %d and %d", l, when, s, n, shared, local)
				}
			}
			want("at first", 5, 7)
			d, err := w.settle(Check{Key: "usr=1", Limit: l, Op: Return, Cost: 5, Decision: ofShared})
			if err != nil || !d.Allowed || d.Source != Undecided || d.Receipt != ofShared.Receipt {
				t.Errorf("%v: out of reach: got %+v, %v, want it dropped, and the receipt kept", l, d, err)
			}
			d, err = w.settle(Check{Key: "usr=1", Limit: l, Op: Return, Cost: 3, Decision: ofLocal})
			if err != nil || !d.Allowed || d.Source != Local || d.Receipt.Units() != 4 {
				t.Errorf("%v: local: got %+v, %v, want 4 left of the receipt", l, d, err)
			}
			want("in the outage", 5, 4)
			w.recovers()
			want("after it", 9, 4) // 3 of the 7 were returned, and are not told
			ofLocal.Receipt = d.Receipt
			if d, err = w.settle(Check{Key: "usr=1", Limit: l, Op: Return, Cost: 4, Decision: ofLocal}); err != nil || d.Source != Local {
				t.Errorf("%v: local, afterwards: got %+v, %v", l, d, err)
			}
			want("with the local receipt returned", 9, 0)
			if d, err = w.settle(Check{Key: "usr=1", Limit: l, Op: Return, Cost: 5, Decision: ofShared}); err != nil || d.Source != Shared || d.Receipt.Units() != 0 {
				t.Errorf("%v: shared, afterwards: got %+v, %v", l, d, err)
			}
			shared := int64(4)
			if l.algorithm == algorithmLeakyBucket {
				shared = 9 // a place in the middle of the queue is not given back
			}
			want("with both receipts returned", shared, 0)
		})
	}
}

// Both kinds of receipts, and a force, in one call.
func TestFallbackSettlesMixedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), FixedWindow(100, 10*time.Hour)
		ofShared := w.take("usr=1", l, 5)
		w.shared.fails(errLost)
		ofLocal := w.take("usr=1", l, 7)
		w.shared.fails(nil)
		call := func() []Check {
			return []Check{
				{Policy: DefaultPolicy, Key: "usr=1", Limit: l, Op: Return, Cost: 2, Decision: ofShared},
				{Policy: DefaultPolicy, Key: "usr=1", Limit: l, Op: Return, Cost: 3, Decision: ofLocal},
				{Policy: DefaultPolicy, Key: "usr=2", Limit: l, Op: Force, Cost: 4},
			}
		}
		checks := call()
		if err := w.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			source    Source
			remaining int64
			left      int64
		}{{Shared, 97, 3}, {Local, 96, 4}, {Shared, 96, 0}} {
			if d := checks[i].Decision; d.Source != want.source || d.Remaining != want.remaining || d.Receipt.Units() != want.left || !d.Allowed {
				t.Errorf("check %d: got %+v, want %+v", i, d, want)
			}
		}
		w.trip()
		checks = call()
		if err := w.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for i, want := range []Source{Undecided, Local, Local} {
			if d := checks[i].Decision; d.Source != want || !d.Allowed {
				t.Errorf("in the outage, check %d: got %+v, want it %v", i, d, want)
			}
		}
		if n := used(t, w.secondary, "usr=2", l); n != 4 {
			t.Errorf("the force charged %d units locally, want 4", n)
		}
	})
}

// A take among settlements is a mistake, wherever those go.
func TestFallbackSettlesNoTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.trip()
		ofLocal := w.take("usr=1", hourly, 5)
		for range 2 {
			checks := []Check{
				{Policy: DefaultPolicy, Key: "usr=1", Limit: hourly, Op: Return, Cost: 5, Decision: ofLocal},
				{Policy: DefaultPolicy, Key: "usr=2", Limit: hourly, Cost: 1, Fail: FailClosed},
			}
			if err := w.Allow(context.Background(), checks); !errors.Is(err, ErrInvalid) {
				t.Errorf("open is %v: got %+v, %v, want ErrInvalid", w.Stats().Open, checks, err)
			}
			w.recovers()
		}
		if n := used(t, w.shared.memory, "usr=2", hourly); n != 0 {
			t.Errorf("%d units were charged by a call that is a mistake", n)
		}
		if n := w.localUse("usr=1", hourly); n != 5 {
			t.Errorf("the secondary holds %d units, want the 5 that no valid call has returned", n)
		}
	})
}

// Without the primary, what an operator wants to have happened fails, and what
// must be charged is charged locally.
func TestFallbackSettlesWithoutThePrimary(t *testing.T) {
	l := TokenBucket(10, time.Hour)
	tests := map[string]struct {
		check  Check
		err    error
		source Source
		used   int64
	}{
		"force":               {Check{Key: "usr=1", Limit: l, Op: Force, Cost: 4}, nil, Local, 4},
		"force, closed":       {Check{Key: "usr=1", Limit: l, Op: Force, Cost: 4, Fail: FailClosed}, nil, Local, 4},
		"force, open":         {Check{Key: "usr=1", Limit: l, Op: Force, Cost: 4, Fail: FailOpen}, nil, Undecided, 0},
		"force into debt":     {Check{Key: "usr=1", Limit: l, Op: Force, Cost: 14}, nil, Local, 10},
		"grant":               {Check{Key: "usr=1", Limit: l, Op: Grant, Cost: 4}, ErrUnavailable, Undecided, 0},
		"grant, open":         {Check{Key: "usr=1", Limit: l, Op: Grant, Cost: 4, Fail: FailOpen}, ErrUnavailable, Undecided, 0},
		"reset":               {Check{Key: "usr=1", Limit: l, Op: Reset}, ErrUnavailable, Undecided, 0},
		"return of nothing":   {Check{Key: "usr=1", Limit: l, Op: Return, Cost: 4}, nil, Undecided, 0},
		"invalid":             {Check{Key: "", Limit: l, Op: Force, Cost: 4}, ErrInvalid, Undecided, 0},
		"invalid grant":       {Check{Key: "usr=1", Op: Grant, Cost: 4}, ErrInvalid, Undecided, 0},
		"invalid, open":       {Check{Key: "usr=1", Limit: l, Op: Force, Cost: -4, Fail: FailOpen}, ErrInvalid, Undecided, 0},
		"force, nobody":       {Check{Key: "usr=1", Limit: Nobody(), Op: Force, Cost: 4}, nil, Local, 0},
		"another's receipt":   {Check{Key: "usr=1", Limit: l, Op: Return, Cost: 1, Decision: Decision{Receipt: Receipt{units: 1, source: Local, algorithm: algorithmFixedWindow}}}, nil, Undecided, 0},
		"force, many units":   {Check{Key: "usr=1", Limit: FixedWindow(10, time.Hour), Op: Force, Cost: 10}, nil, Local, 10},
		"force, of a log":     {Check{Key: "usr=1", Limit: SlidingWindowLog(10, time.Hour), Op: Force, Cost: 3}, nil, Local, 3},
		"force, of a leaky":   {Check{Key: "usr=1", Limit: LeakyBucket(10, time.Hour), Op: Force, Cost: 3}, nil, Local, 3},
		"force, of a sliding": {Check{Key: "usr=1", Limit: SlidingWindowCounter(10, time.Hour), Op: Force, Cost: 3}, nil, Local, 3},
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
				if tt.check.Limit.valid && tt.check.Key != "" {
					if n := w.localUse(tt.check.Key, tt.check.Limit); n != tt.used {
						t.Errorf("%d units are in use locally, want %d", n, tt.used)
					}
				}
			})
		})
	}
}

// The others are settled all the same when one of a call fails.
func TestFallbackSettlesWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, nil), FixedWindow(10, time.Hour)
		w.trip()
		checks := []Check{
			{Policy: DefaultPolicy, Key: "usr=1", Limit: l, Op: Reset},
			{Policy: DefaultPolicy, Key: "usr=2", Limit: l, Op: Force, Cost: 4},
		}
		if err := w.Allow(context.Background(), checks); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if n := used(t, w.secondary, "usr=2", l); n != 4 {
			t.Errorf("the force charged %d units locally, want 4", n)
		}
	})
}
