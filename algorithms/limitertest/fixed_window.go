// The fixed window, aligned to the Unix epoch.
//
//	in use     = the units of the present window, plus the debt of earlier ones
//	debt       = max(0, in use - limit), once per turn
//	RetryAfter = until the turn after which in use - k·limit + cost <= limit, for the k-th turn from now
//	ResetAfter = until the turn after which nothing is in use
//
// The state is stored as the newest instant and the units in three digits.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.FixedWindow,
	most:    1_000_000_000_000,
	family:  window,
	tag:     "fw",
	storage: texts,
	model:   newFixed,
	vectors: fixedWindowTraces,
})

func newFixed(l algorithms.Limit) model {
	window := l.Window().Microseconds()
	return &turning{limit: l.Requests(), period: func(at int64) int64 { return at / window }}
}

var fixed20 = algorithms.FixedWindow(20, time.Minute)

var fixedWindowTraces = []trace{
	{"a fixed window turns with the clock, and debt goes into the next one", fixed20, []step{
		take(0, 18).yes(2, 30*second).stored("1763729430000000018"),
		take(1, 3).no(2, 29_999_999, 29_999_999).same(),
		take(1, 2).yes(0, 29_999_999).stored("1763729430000001020"),
		take(29_999_999, 1).no(0, 1, 1).same(),
		take(30*second, 1).yes(19, 60*second).stored("1763729460000000001"),
		// The first take is of the window before, and the fifth of this one.
		giveBack(31*second, 5, 0).yes(19, 59*second).same(),
		giveBack(31*second, 1, 4).yes(20, 0).stored(""),
		// Forty units are two limits: the turns at 90 s and at 150 s pay one each.
		force(32*second, 50).yes(0, 118*second).stored("1763729462000000040"),
		take(32*second, 1).no(0, 118*second, 118*second).same(),
		take(90*second, 1).no(0, 60*second, 60*second).same(),
		take(150*second, 20).yes(0, 60*second).stored("1763729580000000020"),
		take(150*second, 21).no(0, never, 60*second).same(),
	}},
	{"under another length of windows a count stays if its last write lies in the present window", fixed20, []step{
		take(0, 18).yes(2, 30*second),
		// The hour turns at 13:00:00.
		take(1*second, 3).no(2, 569*second, 569*second).under(fixedHour).same(),
		take(1*second, 2).yes(0, 569*second).under(fixedHour),
		take(32*second, 1).yes(19, 58*second),
	}},
	{"a step back of the clock opens no second quota, and is stored though the call is denied", fixed20, []step{
		take(0, 20).yes(0, 30*second),
		take(-60*second, 1).no(0, 30*second, 30*second).stored("1763729370000000020"),
		take(-30*second-1, 1).no(0, 1, 1).same(),
		take(-30*second, 20).yes(0, 60*second),
	}},
	{"a late caller is judged in the later window", fixed20, []step{
		take(30*second, 20).yes(0, 60*second),
		take(30*second-1, 1).no(0, 60*second+1, 60*second+1).same(),
		take(30*second-100_000, 1).no(0, 60*second+100_000, 60*second+100_000).same(),
	}},
	{"a window of 10^12 units is exact to the unit", algorithms.FixedWindow(1_000_000_000_000, time.Minute), []step{
		take(0, 999_999_999_999).yes(1, 30*second).stored("1763729430000000:999999999999:0"),
		take(1, 2).no(1, 29_999_999, 29_999_999).same(),
		take(1, 1).yes(0, 29_999_999).stored("1763729430000001:1000000000000:0"),
		// A state holds 2^40 units.
		force(2, 200_000_000_000).yes(0, 89_999_998).stored("1763729430000002:1099511627776:0"),
		giveBack(3, 999_999_999_999, 0).yes(900_488_372_223, 29_999_997).stored("1763729430000003:99511627777:0"),
	}},
}

var fixedHour = algorithms.FixedWindow(20, time.Hour)
