package algorithms

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawLimit draws any valid limit, small and round ones often, of up to a
// billion a second: faster ones are rounded more.
func drawLimit(t *rapid.T) Limit {
	window := time.Duration(rapid.OneOf(
		rapid.SampledFrom([]int64{1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000}),
		rapid.Int64Range(1_000, maxWindow),
	).Draw(t, "window, µs")) * time.Microsecond
	requests := rapid.OneOf(rapid.Int64Range(1, 1_000), rapid.Int64Range(1, maxRequests)).Draw(t, "requests")
	of := rapid.SampledFrom([]func(int64, time.Duration) Limit{
		TokenBucket, LeakyBucket, SlidingWindowCounter, SlidingWindowLog, FixedWindow,
	}).Draw(t, "algorithm")
	l := of(requests, window)
	if l.algorithm.Continuous() {
		l = l.WithBurst(rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, maxRequests)).Draw(t, "burst"))
	}
	if !l.valid || l.r > 1_000*l.w {
		t.Skip("not a valid limit, or a fast one")
	}
	return l
}

// drawPortion draws a portion, and how many of them there are.
func drawPortion(t *rapid.T) (p portion, parts int64) {
	if rapid.Bool().Draw(t, "by instances") {
		n := rapid.Int64Range(1, 64).Draw(t, "instances")
		return portion{1, n}, n
	}
	percent := rapid.Int64Range(1, 100).Draw(t, "per cent")
	return portion{percent, 100}, 100 / percent
}

// ratio is a limit's rate in units per µs.
func ratio(l Limit) *big.Rat { return big.NewRat(l.r, l.w) }

func times(r *big.Rat, num, den int64) *big.Rat { return new(big.Rat).Mul(r, big.NewRat(num, den)) }

func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawLimit(t)
		p, parts := drawPortion(t)
		part := p.of(whole)
		if err := part.Validate(); err != nil {
			t.Fatalf("%v of %v is %v: %v", p, whole, part, err)
		}
		kept := whole.algorithm.Continuous() || whole.algorithm.Aligned() // others become buckets
		if p.num == p.den && kept && part != whole {
			t.Fatalf("all of %v is %v", whole, part)
		}
		ideal := times(ratio(whole), p.num, p.den)
		if slowest := big.NewRat(1, maxWindow); ideal.Cmp(slowest) < 0 {
			if ratio(part).Cmp(slowest) != 0 {
				t.Fatalf("%v of %v is %v, want one unit in the longest window", p, whole, part)
			}
			return
		}
		if ratio(part).Cmp(ideal) > 0 {
			t.Fatalf("%v of %v is %v: %d of them are faster than the whole", p, whole, part, parts)
		}
		if ratio(part).Cmp(times(ideal, 98, 100)) <= 0 {
			t.Fatalf("%v of %v is %v: slower than 0.98 of the part", p, whole, part)
		}
		if sum := parts * part.burst; sum > whole.burst+parts-1 {
			t.Fatalf("%v of %v is %v: bursts add up to %d", p, whole, part, sum)
		}
		if part.burst < 1 || part.burst*p.den < whole.burst*p.num {
			t.Fatalf("%v of %v is %v: its burst is below the part", p, whole, part)
		}
		if terms := part.terms; terms.most != whole.burst {
			t.Fatalf("%v of %v takes costs of %d, want those of the whole, %d", p, whole, terms.most, whole.burst)
		}
	})
}

func TestShares(t *testing.T) {
	tests := []struct {
		whole, want Limit // but for the algorithm of windows
		part        portion
	}{
		{TokenBucket(5, time.Minute), TokenBucket(5, 8*time.Minute).WithBurst(1), portion{1, 8}},
		{TokenBucket(100, time.Minute).WithBurst(10), TokenBucket(25, time.Minute).WithBurst(3), portion{1, 4}},
		{LeakyBucket(100, time.Minute).WithBurst(10), LeakyBucket(30, time.Minute).WithBurst(3), portion{30, 100}},
		{FixedWindow(5, time.Minute), TokenBucket(5, 8*time.Minute).WithBurst(1), portion{1, 8}},
		{SlidingWindowLog(10, time.Hour), TokenBucket(10, 2*time.Hour).WithBurst(5), portion{1, 2}},
		{SlidingWindowLog(10, time.Hour), TokenBucket(10, time.Hour), portion{1, 1}},
		{PerDay(10, nil), TokenBucket(10, 48*time.Hour).WithBurst(5), portion{1, 2}},
		{Concurrent(10, time.Hour), Concurrent(3, time.Hour), portion{1, 3}},
		{Concurrent(10, time.Hour), Concurrent(1, time.Hour), portion{1, 64}},
		{TokenBucket(5, 300*24*time.Hour), TokenBucket(5, 1_200*24*time.Hour).WithBurst(2), portion{1, 4}},
		{TokenBucket(1_000, 300*24*time.Hour), TokenBucket(500, 300*24*time.Hour).WithBurst(500), portion{1, 2}},
		{FixedWindow(7, 400*24*time.Hour), TokenBucket(7, 1_200*24*time.Hour).WithBurst(3), portion{1, 3}},
		{TokenBucket(999_983, 300*24*time.Hour), TokenBucket(999_983, 600*24*time.Hour).WithBurst(499_992), portion{1, 2}},
	}
	for _, tt := range tests {
		got := tt.part.of(tt.whole)
		want := big.NewRat(tt.want.requests, tt.want.window)
		if ratio(got).Cmp(want) > 0 || ratio(got).Cmp(times(want, 999_999, 1_000_000)) < 0 || got.burst != tt.want.burst || got.algorithm != tt.want.algorithm {
			t.Errorf("%v of %v: got %v, want %v", tt.part, tt.whole, got, tt.want)
		}
	}
	for _, whole := range []Limit{Nobody(), {}, TokenBucket(0, time.Second), FixedWindow(3, time.Second), PerMonth(3, nil), Concurrent(3, time.Second)} {
		for _, p := range []portion{{1, 1}, {100, 100}} {
			if got := p.of(whole); got != whole {
				t.Errorf("all of %v: got %v", whole, got)
			}
		}
	}
	for _, whole := range []Limit{Nobody(), {}, TokenBucket(0, time.Second)} {
		if got := (portion{1, 2}).of(whole); got != whole {
			t.Errorf("half of %v: got %v, want it as it is", whole, got)
		}
	}
}
