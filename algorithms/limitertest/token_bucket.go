// The token bucket.
//
// A rate of requests per window is r/w in lowest terms, in units per µs. The state says that n units were in use at
// the instant t + f/r µs, with f < r, so every instant at which a whole number of units has drained is exact:
//
//	drained(now) = floor(((now - t)·r - f) / w)
//	fits(c)      when n - drained + c <= burst
//	RetryAfter   = t + ceil((f + (n + c - burst)·w) / r) - now
//	ResetAfter   = t + ceil((f + n·w) / r) - now
//
// A charge moves t and f on to the latest such instant. A full bucket starts at now, with f = 0. The state is stored as
// t and n in three digits if f is 0 and n is below 1 000, otherwise as t:n:f.

package limitertest

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.TokenBucket,
	most:    1_000_000_000,
	family:  bucket,
	tag:     "tb",
	storage: texts,
	model:   newLevel,
	vectors: slices.Concat(tokenBucketTraces, tokenBucketClockTraces),
	// Part of a unit may have refilled before a return. Over all returns that is less than a unit.
	kept: func(algorithms.Limit) int64 { return 1 },
})

var (
	seven      = algorithms.TokenBucket(7, time.Second)
	seven3     = seven.WithBurst(3)
	fourteen20 = algorithms.TokenBucket(14, time.Second).WithBurst(20)
	month      = algorithms.TokenBucket(999_983, 30*24*time.Hour).WithBurst(1_000_000)
	year       = algorithms.TokenBucket(1, 365*24*time.Hour).WithBurst(1_000_000)
)

var tokenBucketTraces = []trace{
	{"a token bucket refills bit by bit, exactly", seven, []step{
		take(0, 7).yes(0, 1_000_000).stored("1763729430000000007"),
		// One unit needs ceil(10^6 / 7) µs.
		take(0, 1).no(0, 142_858, 1_000_000).same(),
		take(142_857, 1).no(0, 1, 857_143).same(),
		// The unit was there at 142 857 + 1/7 µs, so 6/7 µs of the next one have passed already.
		take(142_858, 1).yes(0, 1_000_000).stored("1763729430142857:7:1"),
		// 142 857 + ceil((1 + 3·10^6) / 7) = 571 429.
		take(142_858, 3).no(0, 428_571, 1_000_000).same(),
		take(428_572, 2).yes(0, 1_000_000).stored("1763729430428571:7:3"),
		// floor((571 429·7 - 3) / 10^6) = 4 units have drained since that instant.
		take(1_000_000, 0).yes(4, 428_572).same(),
		take(1_000_000, 8).no(4, never, 428_572).same(),
		grant(1_000_000, 20).yes(7, 0).stored(""),
	}},
	{"a rate that divides nothing loses nothing", month, []step{
		// One unit needs w/r = 2 592 000 000 000 / 999 983 µs, which no integer expresses.
		take(0, 1_000_000).yes(0, 2_592_044_064_750),
		take(0, 1).no(0, 2_592_045, 2_592_044_064_750).same(),
		take(2_592_044, 1).no(0, 1, 2_592_041_472_706).same(),
		take(2_592_045, 1).yes(0, 2_592_044_064_749).stored("1763729432592044:1000000:64748"),
		take(2_592_045, 1_000).no(0, 2_592_044_064, 2_592_044_064_749).same(),
	}},
	{"with burst 1 a bucket that is full stops filling until the next whole microsecond", seven.WithBurst(1), []step{
		take(0, 1).yes(0, 142_858),
		take(142_857, 1).no(0, 1, 1),
		// It was full at 142 857 + 1/7 µs, and starts again at the whole µs.
		take(142_858, 1).yes(0, 142_858),
		take(285_715, 1).no(0, 1, 1),
		take(285_716, 1).yes(0, 142_858),
	}},
	{"what a Duration cannot express is Never, and does no harm", year, []step{
		take(0, 1).yes(999_999, 365*day),
		// 700 000 years exceed the 292 years of a Duration, and 64 bits of µs; so does a million.
		take(0, 699_999).yes(300_000, never),
		take(0, 300_000).yes(0, never),
		take(0, 1).no(0, 365*day, never).same(),
		take(365*day-1, 1).no(0, 1, never).same(),
		take(365*day, 1).yes(0, never),
	}},
}

var tokenBucketClockTraces = []trace{
	{"a cost known late goes into debt of at most one burst", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		// Seven of the 100 units fit into two bursts.
		force(0, 100).yes(0, 2_000_000).stored("1763729430000000014"),
		take(0, 1).no(0, 1_142_858, 2_000_000).same(),
		take(0, 0).no(0, 1_000_000, 2_000_000).same(),
		take(999_999, 0).no(0, 1, 1_000_001).same(),
		take(1_000_000, 0).yes(0, 1_000_000).same(),
		take(1_142_857, 1).no(0, 1, 857_143).same(),
		take(1_142_858, 1).yes(0, 1_000_000),
	}},
	{"units in use carry over to another limit one for one, up to twice its burst", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		take(0, 1).yes(12, 571_429).under(fourteen20).stored("1763729430000000008"),
		// Under a burst of 3 the 8 units count as 6, and 4 must drain: ceil(4·10^6 / 7).
		take(0, 1).no(0, 571_429, 857_143).under(seven3).same(),
		take(571_428, 1).no(0, 1, 285_715).under(seven3).same(),
		take(714_285, 1).yes(0, 285_715).under(seven3).stored("1763729430571428:3:4"),
	}},
	{"a late caller is judged at the stored instant, and the clock never runs backwards", seven, []step{
		take(0, 7).yes(0, 1_000_000).stored("1763729430000000007"),
		// Waits are from the caller's clock to the instant that the newest clock promised.
		take(-1, 1).no(0, 142_859, 1_000_001).same(),
		take(-100_000, 1).no(0, 242_858, 1_100_000).same(),
		take(142_857, 1).no(0, 1, 857_143).same(),
		take(142_858, 1).yes(0, 1_000_000),
	}},
	{"a step back of the clock is repaired at once, and the repair is stored though the call is denied", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		// The state moves to the present, with its units.
		take(-60_000_000, 1).no(0, 142_858, 1_000_000).stored("1763729370000000007"),
		take(-59_857_143, 1).no(0, 1, 857_143).same(),
		take(-59_857_142, 1).yes(0, 1_000_000).stored("1763729370142857:7:1"),
	}},
	{"a step back beyond the tolerance by a microsecond is repaired", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		take(-100_001, 1).no(0, 142_858, 1_000_000).stored("1763729429899999007"),
	}},
	{"a peek stores a repair, too", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		take(-60_000_000, 0).yes(0, 1_000_000).stored("1763729370000000007"),
	}},
	{"a denied call does not store what has drained", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		take(500_000, 7).no(3, 500_000, 500_000).same(),
		take(500_000, 0).yes(3, 500_000).same(),
		// If the denial had stored 3.5 drained units, this late caller would be admitted.
		take(-50_000, 1).no(0, 192_858, 1_050_000).same(),
	}},
	{"a step far ahead drains everything, and the step back keeps what was used since", seven, []step{
		take(0, 7).yes(0, 1_000_000),
		take(3_600*second, 2).yes(5, 285_715),
		// The two units of the future and these five are seven.
		take(0, 5).yes(0, 1_000_000).stored("1763729430000000007"),
	}},
	{"a return that finds no unit in use writes nothing", algorithms.TokenBucket(10, time.Second).WithBurst(5), []step{
		take(0, 3).yes(2, 300_000).stored("1763729430000000003"),
		giveBack(400_000, 3, 0).yes(5, 0).same(),
	}},
}
