// Random limits, costs and steps of the clock, from seeds that a failure prints.

package limitertest

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A source of random calls. Its seed is printed when the test fails.
type source struct{ *rand.Rand }

func newSource(tb testing.TB) source {
	tb.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("PENSTOCK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("PENSTOCK_SEED: %v", err)
		}
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("repeat with PENSTOCK_SEED=%d", seed)
		}
	})
	return source{rand.New(rand.NewPCG(seed, 1))}
}

// traces returns how many random traces a test plays.
func (s Subject) traces(tb testing.TB) int {
	tb.Helper()
	if s.RealClock {
		tb.Skip("random traces need a clock that tests can set")
	}
	return envTraces(tb, max(s.Traces, 1))
}

// runRandom checks a rule in as many random traces as the subject wants.
func (s Subject) runRandom(t *testing.T, name, rule string, run func(w *world, r source)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		w, r := s.world(t, rule), newSource(t)
		for range s.traces(t) {
			if run(w.fresh(), r); t.Failed() {
				return
			}
		}
	})
}

func envTraces(tb testing.TB, normally int) int {
	tb.Helper()
	text := os.Getenv("PENSTOCK_TRACES")
	if text == "" {
		return normally
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("PENSTOCK_TRACES: %v", err)
	}
	return n
}

// pick returns one of values.
func pick[T any](s source, values ...T) T { return values[s.IntN(len(values))] }

// awkward lists rates for which inexact arithmetic fails.
var awkward = []struct {
	requests int64
	window   time.Duration
}{
	{7, time.Second},
	{60, time.Minute},
	{3, time.Minute},
	{10_000_000, time.Second},
	{999_983, 30 * 24 * time.Hour},
	{1, 365 * 24 * time.Hour},
	{1_000_000_000, 24 * time.Hour},
	{1, µs},
	{1_000_000_000, µs},
	{1_000_000_000_000, 30 * 24 * time.Hour},
	{3, 365*24*time.Hour + µs},
	{999_999_937, 365*24*time.Hour + µs},
	{94_906_249, 365 * 24 * time.Hour},
	{9_999, 1<<45*µs - µs},
	{5, 7 * µs},
	{1, time.Millisecond},
}

// limit returns a valid limit of an algorithm.
func (s source) limit(a algorithm) algorithms.Limit {
	for {
		rate := pick(s, awkward...)
		if a.days || s.IntN(3) == 0 { // awkward windows would select few calendars
			rate.requests = 1 + s.Int64N(pick[int64](s, 10, 1_000, 1_000_000_000, a.most))
			rate.window = time.Duration(1+s.Int64N(pick[int64](s, 1e3, 1e7, 1<<45-1))) * µs
		}
		l := a.of(rate.requests, rate.window)
		if s.IntN(2) == 0 {
			l = l.WithBurst(pick(s, 1, 2, 1+s.Int64N(20), 1_000_000, 1_000_000_000, rate.requests))
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// anyLimit returns a valid limit of any algorithm.
func (s source) anyLimit() algorithms.Limit { return s.limit(pick(s, every()...)) }

// cost returns a cost of interest under the limit.
func (s source) cost(l algorithms.Limit) int64 {
	b := l.Burst()
	return pick(s, 0, 1, 1, 1, 2, 1+s.Int64N(b), 1+s.Int64N(b), (b+1)/2, b, b, b+1)
}

// pause returns by how much to move a clock, mostly ahead.
func (s source) pause(l algorithms.Limit) time.Duration {
	unit := l.Window() / time.Duration(l.Requests())
	switch s.IntN(12) {
	case 0:
		return pick(s, -µs, -150*time.Millisecond, -50*time.Millisecond, -time.Minute, -40*24*time.Hour)
	case 1:
		return pick(s, µs, time.Hour, 40*24*time.Hour)
	case 2, 3:
		return 0
	case 4:
		return l.Window()
	default:
		longest := pick(s, unit, unit, 3*unit, l.Window(), 2*l.Window())
		return time.Duration(s.Int64N(max(1, min(longest.Microseconds()+2, math.MaxInt64/1000)))) * µs
	}
}

// move moves the clock on, within the years that a clock may show.
func (w *world) move(d time.Duration) {
	if at := w.clock.instant() + d.Microseconds(); at > 1<<50 && at < lastInstant {
		w.clock.set(at)
	}
}

// disturb brings the state under a check's key, and the clock, into a random situation.
func (w *world) disturb(r source, of algorithms.Check) {
	w.Helper()
	l := of.Limit
	for range r.IntN(6) {
		c := algorithms.Check{Policy: of.Policy, Key: of.Key, Limit: l, Cost: r.cost(l)}
		switch r.IntN(8) {
		case 0:
			c.Op = algorithms.Force
		case 1:
			c.Op = algorithms.Grant
		}
		d := w.one(c)
		if c.Op == algorithms.Take && d.Receipt.Units() > 0 && r.IntN(4) == 0 {
			w.move(r.pause(l))
			c.Op, c.Cost, c.Decision = algorithms.Return, 1+r.Int64N(c.Cost), d
			w.one(c)
		}
		w.move(r.pause(l))
	}
}
