// The sliding window log: every admission counts for exactly one window.
//
//	in use     = the units of entries younger than one window
//	RetryAfter = until enough of the oldest entries are one window old
//	ResetAfter = until the newest entry is one window old
//
// The state is a list. A header with the newest instant and the sum of all units comes first, then the entries from
// old to new. Each is an instant and its units in three digits.

package limitertest

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.SlidingWindowLog,
	most:    10_000,
	family:  log,
	tag:     "sl",
	storage: lists,
	model:   newEntries,
	vectors: logTraces,
})

var log5 = algorithms.SlidingWindowLog(5, time.Minute)

// logText is the list of a log with these entries, each an instant in seconds since the epoch and units.
func logText(pairs ...int64) string {
	var entries []admission
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, admission{pairs[i] * second, pairs[i+1]})
	}
	return listText(entries)
}

var logTraces = []trace{
	{"a log forgets every admission exactly one window after it", log5, []step{
		take(0, 1).yes(4, 60*second).stored(logText(0, 1)),
		take(0, 1).yes(3, 60*second).stored(logText(0, 1, 0, 1)),
		take(10*second, 2).yes(1, 60*second).stored(logText(0, 1, 0, 1, 10, 2)),
		take(20*second, 1).yes(0, 60*second).stored(logText(0, 1, 0, 1, 10, 2, 20, 1)),
		// The entries leave at 60 s (1 + 1), 70 s (2) and 80 s (1).
		take(20*second, 1).no(0, 40*second, 60*second).same(),
		take(20*second, 3).no(0, 50*second, 60*second).same(),
		take(20*second, 5).no(0, 60*second, 60*second).same(),
		take(59_999_999, 1).no(0, 1, 20_000_001).same(),
		take(60*second, 2).yes(0, 60*second).stored(logText(10, 2, 20, 1, 60, 2)),
		giveBack(60*second, 1, 2).yes(1, 60*second).stored(logText(10, 1, 20, 1, 60, 2)),
		force(60*second, 4).yes(0, 60*second).stored(logText(10, 1, 20, 1, 60, 2, 60, 4)),
		force(60*second, 2000).yes(0, 60*second).stored(logText(10, 1, 20, 1, 60, 2, 60, 4, 60, 2)),
		take(60*second, 1).no(0, 60*second, 60*second).same(),
		// A step back by 59 s joins all entries in one at the present.
		take(1*second, 1).no(0, 60*second, 60*second).stored(logText(1, 10)),
		take(60_999_999, 1).no(0, 1, 1).same(),
		take(61*second, 5).yes(0, 60*second).stored(logText(61, 5)),
	}},
	{"entries that have expired are trimmed, also when the call is denied", log5, []step{
		take(0, 1).yes(4, 60*second),
		take(10*second, 3).yes(1, 60*second),
		take(60*second, 3).no(2, 10*second, 10*second).stored(logText(10, 3)),
		take(10*second, 2).yes(0, 60*second).stored(logText(10, 3, 10, 2)),
	}},
	{"a log that has expired altogether is fresh", log5, []step{
		take(0, 5).yes(0, 60*second),
		take(59_999_999, 5).no(0, 1, 1).same(),
		take(60*second, 1).yes(4, 60*second).stored(logText(60, 1)),
	}},
	{"units that are given back leave the newest first, and no header lies", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(10*second, 2).yes(1, 60*second),
		grant(20*second, 1).yes(2, 50*second).stored(logText(0, 2, 10, 1)),
		grant(20*second, 1).yes(3, 40*second).stored(logText(0, 2)),
		grant(20*second, 7).yes(5, 0).stored(""),
	}},
	{"a late caller's entry stands at the newest instant", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(-100_000, 1).yes(2, 60_100_000).stored(logText(0, 2, 0, 1)),
		take(-100_001, 1).yes(1, 60*second),
	}},
	{"a clock before 2001 has instants of 15 digits, which make other texts", algorithms.SlidingWindowLog(5, time.Hour), []step{
		take(year2000-epoch, 1).yes(4, hour),
		take(year2000-epoch+second, 2).yes(2, hour),
		take(year2000-epoch+2*second, 3).no(2, hour-2*second, hour-second),
		take(year2000-epoch+2*second, 2).yes(0, hour),
		take(year2000-epoch+hour, 5).no(1, 2*second, 2*second),
	}},
	{"a shorter window drops older entries at once and for good", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(10*second, 2).yes(1, 60*second),
		take(15*second, 1).yes(2, 10*second).under(algorithms.SlidingWindowLog(5, 10*time.Second)),
		take(15*second, 2).yes(0, 60*second),
	}},
}
