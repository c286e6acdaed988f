// The sliding window counter: the previous window counts in the proportion that still overlaps.
//
// Windows of W µs are aligned to the Unix epoch. With n units in the present window, p in the previous one, and m
// µs of the previous one within the last W µs:
//
//	in use     = n + ceil(p·m / W)
//	RetryAfter = the least d at which in use + cost <= limit; past the turn, n becomes p
//	ResetAfter = until the end of the next window if n > 0, otherwise until p·m / W = 0
//
// The state is stored as the newest instant t, n and p: t and n in three digits if p is 0, otherwise t:n:p.

package limitertest

import (
	"math/big"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.SlidingWindowCounter,
	most:    1_000_000_000,
	family:  window,
	tag:     "sc",
	storage: texts,
	model:   newFading,
	vectors: counterTraces,
	fades:   true,
})

// A fading model counts the present window in full, and the previous one in the proportion that still overlaps.
type fading struct {
	admissions
	limit, window int64
}

func newFading(l algorithms.Limit) model {
	return &fading{limit: l.Requests(), window: l.Window().Microseconds()}
}

func (m *fading) used(now int64) *big.Rat {
	start := now - now%m.window
	sum := new(big.Rat).SetInt64(m.within(start, start+m.window))
	overlap := big.NewRat(start+m.window-now, m.window)
	return sum.Add(sum, overlap.Mul(overlap, new(big.Rat).SetInt64(m.within(start-m.window, start))))
}

// room ignores the previous window: debt is bounded in the present one.
func (m *fading) room(now int64) int64 {
	start := now - now%m.window
	return max(0, maxDebt(m.limit)-m.within(start, start+m.window))
}

func (m *fading) giveBack(_ int64, charge int, _, part int64) {
	if part > 0 {
		start := m.all[charge].at / m.window * m.window
		m.forget(part, start, start+m.window)
	}
}

var (
	counter30    = algorithms.SlidingWindowCounter(30, time.Minute)
	counterHour  = algorithms.SlidingWindowCounter(30, time.Hour)
	counterMonth = algorithms.SlidingWindowCounter(999_983, 30*24*time.Hour)
)

var counterTraces = []trace{
	{"the previous window counts in the proportion that still overlaps, rounded up", counter30, []step{
		take(0, 20).yes(10, 90*second).stored("1763729430000000020"),
		// From 30 s on the 20 units fade: ceil(20·m / 60 s) + 11 <= 30 once m = 57 s, at 33 s.
		take(0, 11).no(10, 33*second, 90*second).same(),
		take(30*second, 10).yes(0, 120*second).stored("1763729460000000:10:20"),
		// 10 + ceil(20·57/60) + 1 = 30 at 33 s.
		take(30*second, 1).no(0, 3*second, 120*second).same(),
		take(33*second, 1).yes(0, 117*second).stored("1763729463000000:11:20"),
		take(33*second, 5).no(0, 15*second, 117*second).same(),
		take(44_999_999, 5).no(3, 3_000_001, 105_000_001).same(),
		// Of the previous window 17 are left: 11 + ceil(17·45/60) = 24.
		giveBack(45*second, 3, 0).yes(6, 105*second).stored("1763729475000000:11:17"),
		giveBack(45*second, 3, 2).yes(9, 105*second).stored("1763729475000000:8:17"),
		force(95*second, 20).yes(2, 115*second),
		// Two limits are the cap of the present window.
		force(95*second, 20).yes(0, 115*second).stored("1763729525000000:40:8"),
		take(95*second, 20).no(0, 100*second, 115*second).same(),
	}},
	{"the proportion is exact, whatever the numbers", counterMonth, []step{
		take(0, 999_983).yes(0, 4_014_570_000_000),
		// The window of 30 days turns at 1 422 570 s, where 999 983 units begin to fade. The first one is gone after
		// ceil(30 d / 999 983) µs.
		take(0, 1).no(0, 1_422_572_592_045, 4_014_570_000_000).same(),
		take(0, 999_983).no(0, 4_014_570_000_000, 4_014_570_000_000).same(),
		take(20*day, 0).yes(117_833, 4_014_570_000_000-20*day).same(),
		take(20*day, 600_000).no(117_833, 1_249_796_438_850, 4_014_570_000_000-20*day).same(),
	}},
	{"a step back of the clock keeps both counts, and is stored though the call is denied", counter30, []step{
		take(0, 20).yes(10, 90*second),
		take(30*second, 10).yes(0, 120*second).stored("1763729460000000:10:20"),
		// Both counts move to the window that begins at the present.
		take(-30*second, 1).no(0, 3*second, 120*second).stored("1763729400000000:10:20"),
		take(-27*second, 1).yes(0, 117*second),
	}},
	{"a late caller is judged in the later window", counter30, []step{
		take(30*second, 30).yes(0, 120*second),
		take(30*second-1, 1).no(0, 62*second+1, 120*second+1).same(),
		take(30*second-100_000, 1).no(0, 62*second+100_000, 120*second+100_000).same(),
	}},
	{"a count whose last write lies in the present window of a changed length counts in full", counter30, []step{
		take(0, 20).yes(10, 90*second),
		take(1*second, 1).yes(9, 4_169*second).under(counterHour).stored("1763729431000000021"),
		take(2*second, 1).yes(8, 18*second).under(algorithms.SlidingWindowCounter(30, 10*time.Second)),
	}},
}
