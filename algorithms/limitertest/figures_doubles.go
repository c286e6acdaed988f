// States on which arithmetic in doubles is off by one. Redis computes in doubles, and random traces hardly meet such
// states, so they are searched: candidates are kept where the naive expression in doubles differs from integers.

package limitertest

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runDoubles(t *testing.T, s Subject) {
	t.Run("weights", func(t *testing.T) { t.Parallel(); runWeights(t, s) })
	t.Run("quotients", func(t *testing.T) { t.Parallel(); runQuotients(t, s) })
}

// A weight is f units in a previous window that overlaps by m µs, and the units that they count for.
type weight struct{ f, m, window, want int64 }

var weights = []weight{
	{561_561, 8_229_524_571_685, 365 * day, 146_544},
	{743_908, 17_866_971_872_866, 365 * day, 421_468},
	{96_008, 33_303_264_452_676, 1<<45 - 1, 90_876},
	{869_443, 6_668_432_053_954, 1<<45 - 1, 164_785},
}

// runWeights fills a window with f units in its last µs, and asks when m µs of it still overlap.
func runWeights(t *testing.T, s Subject) {
	w := s.world(t, "the previous window's share is ceil(f·m/W), exactly")
	r := newSource(t)
	tests := weights
	for len(tests) < 40 {
		window := pick[int64](r, 365*day, 1<<45-1, 1<<45-1-r.Int64N(1<<44))
		f, m := r.Int64N(1_000_000_000), r.Int64N(window)+1
		if c := share(f, m, window); c != int64(math.Ceil(float64(f)*float64(m)/float64(window))) {
			tests = append(tests, weight{f, m, window, c})
		}
		// Quotients that are whole, or nearly so, are where doubles fail.
		q := r.Int64N(f + 1)
		if m = int64(float64(q) * float64(window) / float64(f+1)); m == 0 {
			continue
		}
		if c := share(f+1, m, window); c != int64(math.Ceil(float64(f+1)*float64(m)/float64(window))) {
			tests = append(tests, weight{f + 1, m, window, c})
		}
	}
	for _, tt := range tests {
		w := w.fresh()
		l := algorithms.SlidingWindowCounter(1_000_000_000, time.Duration(tt.window)*µs)
		start := epoch / tt.window * tt.window
		w.clock.set(start - 1)
		w.take(l, tt.f)
		w.clock.set(start + tt.window - tt.m)
		if got := l.Requests() - w.take(l, 0).Remaining; got != tt.want {
			w.errorf("f = %d, m = %d, W = %d: got %d, want %d", tt.f, tt.m, tt.window, got, tt.want)
		}
		// Verdicts may come from another computation than figures.
		more, rest := w.take(l, l.Requests()-tt.want+1), w.take(l, l.Requests()-tt.want)
		if more.Allowed || !rest.Allowed {
			w.errorf("f = %d, m = %d, W = %d: got allowed %t and %t for Remaining + 1 and Remaining, want false, true",
				tt.f, tt.m, tt.window, more.Allowed, rest.Allowed)
		}
	}
}

// share returns ceil(f·m/window).
func share(f, m, window int64) int64 {
	x := new(big.Int).Mul(big.NewInt(f), big.NewInt(m))
	x.Add(x, big.NewInt(window-1))
	return x.Div(x, big.NewInt(window)).Int64()
}

// A quotient is a bucket with n units in use at f/r µs after the epoch, asked at µs after it.
type quotient struct {
	requests, window, burst int64
	n, f, at                int64
	want                    int64 // units that have drained
}

var quotients = []quotient{
	{7, second, 1_000_000, 958_725, 2, 78_467_714_286, 549_274},
	{10_000_000, second, 1, 1, 9, 1, 1},
	{999_983, 30 * day, 999_983, 344_699, 48_891, 315_291_055_948, 121_637},
	{94_906_249, 365 * day, 40_000_000, 5_600_426, 89_957_715, 251_822_137_951, 757_847},
	{1_000_003, 365 * day, 2_000_000, 1_766_165, 988_460, 35_220_781_329_657, 1_116_847},
}

// runQuotients plants a bucket, and asks how much has drained.
func runQuotients(t *testing.T, s Subject) {
	if s.Store == nil {
		return // such a state is out of reach without years of calls
	}
	r := newSource(t)
	tests := quotients
	for len(tests) < 60 {
		if q, off := r.quotient(pick(r, quotients...)); off {
			tests = append(tests, q)
		}
	}
	for _, a := range buckets() {
		w := s.world(t, "as many units have drained as had time to, exactly: floor(((now - t)·r - f) / w)")
		for _, tt := range tests {
			w := w.fresh()
			c := w.on("", a.of(tt.requests, time.Duration(tt.window)*µs).WithBurst(tt.burst), 0)
			w.plant(c, fmt.Sprintf("%d:%d:%d", int64(epoch), tt.n, tt.f))
			w.to(tt.at)
			if got := tt.burst - w.one(c).Remaining; got != tt.n-tt.want {
				w.errorf("%v with n = %d, f = %d after %d µs: got %d units in use, want %d",
					c.Limit, tt.n, tt.f, tt.at, got, tt.n-tt.want)
			}
		}
	}
}

// quotient varies a bucket's state, and reports whether the quotient of doubles is off for it.
func (s source) quotient(q quotient) (quotient, bool) {
	g := new(big.Int).GCD(nil, nil, big.NewInt(q.requests), big.NewInt(q.window)).Int64()
	r, w := q.requests/g, q.window/g
	q.n = 1 + s.Int64N(q.burst)
	q.f = s.Int64N(r)
	k := 1 + s.Int64N(q.n)
	// The instant at which k units have drained, or a µs before it.
	instant := new(big.Int).Mul(big.NewInt(k), big.NewInt(w))
	instant.Add(instant, big.NewInt(q.f+r-1))
	q.at = instant.Div(instant, big.NewInt(r)).Int64() - s.Int64N(2)
	drained := new(big.Int).Mul(big.NewInt(q.at), big.NewInt(r))
	drained.Sub(drained, big.NewInt(q.f))
	if drained.Sign() < 0 {
		return q, false
	}
	q.want = min(q.n, drained.Div(drained, big.NewInt(w)).Int64())
	double := (float64(q.at) - float64(q.f)/float64(r)) * float64(r) / float64(w)
	return q, int64(min(math.Floor(double), float64(q.n))) != q.want
}
