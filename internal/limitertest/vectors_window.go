package limitertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var (
	counter30    = algorithms.SlidingWindowCounter(30, time.Minute)
	counterMonth = algorithms.SlidingWindowCounter(999_983, 30*24*time.Hour)
)

var counterTraces = []trace{
	{"the previous window counts in the proportion that still overlaps, rounded up", counter30, []step{
		take(0, 20).yes(10, 90*second).stored("1763729430000000020"),
		take(0, 11).no(10, 33*second, 90*second).same(),
		take(30*second, 10).yes(0, 120*second).stored("1763729460000000:10:20"),
		take(30*second, 1).no(0, 3*second, 120*second).same(),
		take(33*second, 1).yes(0, 117*second).stored("1763729463000000:11:20"),
		take(33*second, 5).no(0, 15*second, 117*second).same(),
		take(44_999_999, 5).no(3, 3_000_001, 105_000_001).same(),
		giveBack(45*second, 3, 0).yes(6, 105*second).stored("1763729475000000:11:17"),
		giveBack(45*second, 3, 2).yes(9, 105*second).stored("1763729475000000:8:17"),
		force(95*second, 20).yes(2, 115*second),
		force(95*second, 20).yes(0, 115*second).stored("1763729525000000:40:8"),
		take(95*second, 20).no(0, 100*second, 115*second).same(),
	}},
	{"the proportion is exact, whatever the numbers", counterMonth, []step{
		take(0, 999_983).yes(0, 4_014_570_000_000),
		take(0, 1).no(0, 1_422_572_592_045, 4_014_570_000_000).same(),
		take(0, 999_983).no(0, 4_014_570_000_000, 4_014_570_000_000).same(),
		take(20*day, 0).yes(117_833, 4_014_570_000_000-20*day).same(),
		take(20*day, 600_000).no(117_833, 1_249_796_438_850, 4_014_570_000_000-20*day).same(),
	}},
	{"the previous window counts until the present one ends", counter30, []step{
		take(0, 30).yes(0, 90*second),
		take(89_999_999, 30).no(29, 1, 1).same(),
		take(90*second, 30).yes(0, 120*second).stored("1763729520000000030"),
	}},
	{"a step back of the clock keeps both counts, and is stored though the call is denied", counter30, []step{
		take(0, 20).yes(10, 90*second),
		take(30*second, 10).yes(0, 120*second).stored("1763729460000000:10:20"),
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
		take(1*second, 1).yes(9, 4_169*second).under(algorithms.SlidingWindowCounter(30, time.Hour)).stored("1763729431000000021"),
		take(2*second, 1).yes(8, 18*second).under(algorithms.SlidingWindowCounter(30, 10*time.Second)),
	}},
}

var log5 = algorithms.SlidingWindowLog(5, time.Minute)

// logText is the list of a log: the header, then the entries, each an instant in seconds since the epoch and units.
func logText(pairs ...int) string {
	var texts []string
	for i := 0; i < len(pairs); i += 2 {
		texts = append(texts, fmt.Sprintf("%d%03d", epoch+pairs[i]*second, pairs[i+1]))
	}
	return strings.Join(texts, " ")
}

var logTraces = []trace{
	{"a log forgets every admission exactly one window after it", log5, []step{
		take(0, 1).yes(4, 60*second).stored(logText(0, 1, 0, 1)),
		take(0, 1).yes(3, 60*second).stored(logText(0, 2, 0, 1, 0, 1)),
		take(10*second, 2).yes(1, 60*second).stored(logText(10, 4, 0, 1, 0, 1, 10, 2)),
		take(20*second, 1).yes(0, 60*second).stored(logText(20, 5, 0, 1, 0, 1, 10, 2, 20, 1)),
		take(20*second, 1).no(0, 40*second, 60*second).same(),
		take(20*second, 3).no(0, 50*second, 60*second).same(),
		take(20*second, 5).no(0, 60*second, 60*second).same(),
		take(59_999_999, 1).no(0, 1, 20_000_001).same(),
		take(60*second, 2).yes(0, 60*second).stored(logText(60, 5, 10, 2, 20, 1, 60, 2)),
		giveBack(60*second, 1, 2).yes(1, 60*second).stored(logText(60, 4, 10, 1, 20, 1, 60, 2)),
		force(60*second, 4).yes(0, 60*second).stored(logText(60, 8, 10, 1, 20, 1, 60, 2, 60, 4)),
		force(60*second, 2000).yes(0, 60*second).stored(logText(60, 10, 10, 1, 20, 1, 60, 2, 60, 4, 60, 2)),
		take(60*second, 1).no(0, 60*second, 60*second).same(),
		take(1*second, 1).no(0, 60*second, 60*second).stored(logText(1, 10, 1, 10)),
		take(60_999_999, 1).no(0, 1, 1).same(),
		take(61*second, 5).yes(0, 60*second).stored(logText(61, 5, 61, 5)),
	}},
	{"entries that have expired are trimmed, also when the call is denied", log5, []step{
		take(0, 1).yes(4, 60*second),
		take(10*second, 3).yes(1, 60*second),
		take(60*second, 3).no(2, 10*second, 10*second).stored(logText(10, 3, 10, 3)),
		take(10*second, 2).yes(0, 60*second).stored(logText(10, 5, 10, 3, 10, 2)),
	}},
	{"a log that has expired altogether is fresh", log5, []step{
		take(0, 5).yes(0, 60*second),
		take(59_999_999, 5).no(0, 1, 1).same(),
		take(60*second, 1).yes(4, 60*second).stored(logText(60, 1, 60, 1)),
	}},
	{"units that are given back leave the newest first, and no header lies", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(10*second, 2).yes(1, 60*second),
		grant(20*second, 1).yes(2, 50*second).stored(logText(10, 3, 0, 2, 10, 1)),
		grant(20*second, 1).yes(3, 40*second).stored(logText(0, 2, 0, 2)),
		grant(20*second, 7).yes(5, 0).stored(""),
	}},
	{"a late caller's entry stands at the newest instant", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(-100_000, 1).yes(2, 60_100_000).stored(logText(0, 3, 0, 2, 0, 1)),
		take(-100_001, 1).yes(1, 60*second),
	}},
	{"a shorter window drops older entries at once and for good", log5, []step{
		take(0, 2).yes(3, 60*second),
		take(10*second, 2).yes(1, 60*second),
		take(15*second, 1).yes(2, 10*second).under(algorithms.SlidingWindowLog(5, 10*time.Second)),
		take(15*second, 2).yes(0, 60*second),
	}},
}

var fixed20 = algorithms.FixedWindow(20, time.Minute)

var fixedWindowTraces = []trace{
	{"a fixed window turns with the clock, and debt goes into the next one", fixed20, []step{
		take(0, 18).yes(2, 30*second).stored("1763729430000000018"),
		take(1, 3).no(2, 29_999_999, 29_999_999).same(),
		take(1, 2).yes(0, 29_999_999).stored("1763729430000001020"),
		take(29_999_999, 1).no(0, 1, 1).same(),
		take(30*second, 1).yes(19, 60*second).stored("1763729460000000001"),
		giveBack(31*second, 5, 0).yes(19, 59*second).same(),
		giveBack(31*second, 1, 4).yes(20, 0).stored(""),
		force(32*second, 50).yes(0, 118*second).stored("1763729462000000040"),
		take(32*second, 1).no(0, 118*second, 118*second).same(),
		take(90*second, 1).no(0, 60*second, 60*second).same(),
		take(150*second, 20).yes(0, 60*second).stored("1763729580000000020"),
		take(150*second, 21).no(0, never, 60*second).same(),
	}},
	{"a count whose last write lies in the present window of a changed length counts, any other is gone", fixed20, []step{
		take(0, 18).yes(2, 30*second),
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
	{"windows of a day turn at midnight UTC", algorithms.FixedWindow(1, 24*time.Hour), []step{
		take(0, 1).yes(0, 40_170*second), // 12:50:30
		take(40_170*second-1, 1).no(0, 1, 1),
		take(40_170*second, 1).yes(0, day),
	}},
}

var fixedHour = algorithms.FixedWindow(20, time.Hour)
