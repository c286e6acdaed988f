// Shares of limits, one by one: each has the part's rate and burst, and all
// parts add up to no more than the whole.

package step_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/internal/draw"
)

// drawLimit draws any valid limit, small and round ones often, of up to a
// billion a second, and large windows up to fifty million: faster ones are
// rounded more.
func drawLimit(v *draw.Values) algorithms.Limit {
	for {
		window := time.Duration(draw.Of(v, 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000, v.Int64(1_000, step.MaxWindow))) * time.Microsecond
		requests := v.Int64(1, draw.Of(v, int64(1_000), 1_000_000_000, 1_000_000_000_000))
		of := draw.Of(v, algorithms.TokenBucket, algorithms.LeakyBucket, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog, algorithms.FixedWindow)
		l := of(requests, window)
		if l.Algorithm().Continuous() {
			l = l.WithBurst(v.Int64(1, draw.Of(v, int64(100), 1_000_000_000)))
		}
		if s := l.Step(); l.Validate() == nil && s.R <= 1_000*s.W && (requests <= 1_000_000_000 || s.R <= 50*s.W) {
			return l
		}
	}
}

// A portion is num/den of a limit.
type portion struct{ num, den int64 }

func (p portion) String() string { return fmt.Sprintf("%d/%d", p.num, p.den) }

func (p portion) of(l algorithms.Limit) algorithms.Limit {
	return algorithms.LimitOf(l.Step().Share(p.num, p.den))
}

// drawPortion draws a portion, and how many of them there are.
func drawPortion(v *draw.Values) (p portion, parts int64) {
	if v.Bool() {
		n := v.Int64(1, 64)
		return portion{1, n}, n
	}
	percent := v.Int64(1, 100)
	return portion{percent, 100}, 100 / percent
}

// ratio is a limit's rate in units per µs.
func ratio(l algorithms.Limit) *big.Rat { return big.NewRat(l.Step().R, l.Step().W) }

func times(r *big.Rat, num, den int64) *big.Rat { return new(big.Rat).Mul(r, big.NewRat(num, den)) }

func TestSharesAddUp(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		whole := drawLimit(v)
		p, parts := drawPortion(v)
		part := p.of(whole)
		if err := part.Validate(); err != nil && whole.Burst() <= 1_000_000_000 || part.Step().Bucket() && !part.Step().Exact() {
			t.Fatalf("%v of %v is %v: inexact, or %v", p, whole, part, err)
		}
		kept := whole.Algorithm().Continuous() || whole.Algorithm().Aligned() // others become buckets
		if p.num == p.den && kept && part != whole {
			t.Fatalf("all of %v is %v", whole, part)
		}
		ideal := times(ratio(whole), p.num, p.den)
		if slowest := big.NewRat(1, step.MaxWindow); ideal.Cmp(slowest) < 0 {
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
		if sum := parts * part.Burst(); sum > whole.Burst()+parts-1 {
			t.Fatalf("%v of %v is %v: bursts add up to %d", p, whole, part, sum)
		}
		if part.Burst() < 1 || part.Burst()*p.den < whole.Burst()*p.num {
			t.Fatalf("%v of %v is %v: its burst is below the part", p, whole, part)
		}
		if most := part.Step().Most; most != whole.Burst() {
			t.Fatalf("%v of %v takes costs of %d, want those of the whole, %d", p, whole, most, whole.Burst())
		}
	})
}

func TestShares(t *testing.T) {
	const day = 24 * time.Hour
	bucket, window := algorithms.TokenBucket, algorithms.FixedWindow
	tests := []struct {
		whole, want algorithms.Limit // except for the algorithm of windows
		part        portion
	}{
		{bucket(5, time.Minute), bucket(5, 8*time.Minute).WithBurst(1), portion{1, 8}},
		{bucket(100, time.Minute).WithBurst(10), bucket(25, time.Minute).WithBurst(3), portion{1, 4}},
		{algorithms.LeakyBucket(100, time.Minute).WithBurst(10), algorithms.LeakyBucket(30, time.Minute).WithBurst(3), portion{30, 100}},
		{window(5, time.Minute), bucket(5, 8*time.Minute).WithBurst(1), portion{1, 8}},
		{algorithms.SlidingWindowLog(10, time.Hour), bucket(10, 2*time.Hour).WithBurst(5), portion{1, 2}},
		{algorithms.SlidingWindowLog(10, time.Hour), bucket(10, time.Hour), portion{1, 1}},
		{algorithms.PerDay(10, nil), bucket(10, 2*day).WithBurst(5), portion{1, 2}},
		{algorithms.Concurrent(10, time.Hour), algorithms.Concurrent(3, time.Hour), portion{1, 3}},
		{algorithms.Concurrent(10, time.Hour), algorithms.Concurrent(1, time.Hour), portion{1, 64}},
		{bucket(5, 300*day), bucket(5, 1_200*day).WithBurst(2), portion{1, 4}},
		{bucket(1_000, 300*day), bucket(500, 300*day).WithBurst(500), portion{1, 2}},
		{window(7, 400*day), bucket(7, 1_200*day).WithBurst(3), portion{1, 3}},
		{bucket(999_983, 300*day), bucket(999_983, 600*day).WithBurst(499_992), portion{1, 2}},
	}
	for _, tt := range tests {
		got := tt.part.of(tt.whole)
		want := big.NewRat(tt.want.Requests(), tt.want.Window().Microseconds())
		tooFast, tooSlow := ratio(got).Cmp(want) > 0, ratio(got).Cmp(times(want, 999_999, 1_000_000)) < 0
		if tooFast || tooSlow || got.Burst() != tt.want.Burst() || got.Algorithm() != tt.want.Algorithm() {
			t.Errorf("%v of %v: got %v, want %v", tt.part, tt.whole, got, tt.want)
		}
	}
	for _, whole := range []algorithms.Limit{
		algorithms.Nobody(), window(3, time.Second), algorithms.PerMonth(3, nil), algorithms.Concurrent(3, time.Second),
	} {
		for _, p := range []portion{{1, 1}, {100, 100}} {
			if got := p.of(whole); got != whole {
				t.Errorf("all of %v: got %v", whole, got)
			}
		}
	}
	if got := (portion{1, 2}).of(algorithms.Nobody()); got != algorithms.Nobody() {
		t.Errorf("half of nobody: got %v, want it as it is", got)
	}
}
