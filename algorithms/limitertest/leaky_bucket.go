// The leaky bucket: a queue that drains at the rate.
//
// Its state and figures are those of the token bucket. An admitted take also waits until the units before it have
// drained:
//
//	Delay = t + ceil((f + n·w) / r) - now, with the n before the charge
//
// A Return credits only the newest place in the queue, because the waiting requests have received their Delay.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.LeakyBucket,
	most:    1_000_000_000,
	family:  bucket,
	tag:     "lb",
	storage: texts,
	model:   newLevel,
	vectors: leakyBucketTraces,
	delays:  true,
	kept:    algorithms.Limit.Burst, // only the newest take is credited
})

var leakyBucketTraces = []trace{
	{"a leaky bucket of five admits five at once, and serves them at its rate", leaky5, []step{
		take(0, 1).yes(4, 500_000).stored("1763729430000000001"),
		take(0, 1).yes(3, 1_000_000).hold(500_000).stored("1763729430000000002"),
		take(0, 1).yes(2, 1_500_000).hold(1_000_000).stored("1763729430000000003"),
		take(0, 1).yes(1, 2_000_000).hold(1_500_000).stored("1763729430000000004"),
		take(0, 1).yes(0, 2_500_000).hold(2_000_000).stored("1763729430000000005"),
		// The queue is full until the first unit has drained, after 10^6 / 2 µs.
		take(0, 1).no(0, 500_000, 2_500_000).same(),
		take(499_999, 1).no(0, 1, 2_000_001).same(),
		take(500_000, 1).yes(0, 2_500_000).hold(2_000_000).stored("1763729430500000005"),
		grant(500_000, 1).yes(1, 2_000_000).stored("1763729430500000004"),
		take(500_000, 1).yes(0, 2_500_000).hold(2_000_000).stored("1763729430500000005"),
		// Five units from 0.5 s on: two have drained at 1.5 s, and three more take until 3 s.
		take(1_700_000, 2).yes(0, 2_300_000).hold(1_300_000).stored("1763729431500000005"),
		take(1_700_000, 0).yes(0, 2_300_000).same(),
		force(1_700_000, 1).yes(0, 2_800_000),
	}},
	{"delays are lattice points rounded up once", algorithms.LeakyBucket(7, time.Second).WithBurst(4), []step{
		take(0, 2).yes(2, 285_715),
		// Two units drain at 2·10^6 / 7 = 285 714 + 2/7 µs, four at 571 428 + 4/7 µs.
		take(0, 2).yes(0, 571_429).hold(285_715),
		take(0, 2).no(0, 285_715, 571_429),
		take(285_715, 2).yes(0, 571_428).hold(285_714).stored("1763729430285714:4:2"),
	}},
	{"only the newest place of a queue can be given back; waiting requests keep their distance", leaky5, []step{
		take(0, 2).yes(3, 1_000_000),
		take(0, 1).yes(2, 1_500_000).hold(1_000_000),
		// The take behind has a Delay of 1 s. It keeps that place.
		giveBack(1_000, 2, 0).yes(2, 1_499_000).same(),
		giveBack(1_000, 1, 1).yes(3, 999_000).stored("1763729430000000002"),
		take(1_000, 1).yes(2, 1_499_000).hold(999_000).stored("1763729430000000003"),
	}},
}

var leaky5 = algorithms.LeakyBucket(2, time.Second).WithBurst(5)
