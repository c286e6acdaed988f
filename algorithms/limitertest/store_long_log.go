// Logs of many entries. A script reads a long list in portions, so entries at the ends of portions matter.

package limitertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runLogs(t *testing.T, s Subject) {
	for _, entries := range []int{64, 65, 129, 200} {
		for _, r := range longLogRules {
			t.Run(fmt.Sprintf("%d entries: %s", entries, r.rule), func(t *testing.T) {
				t.Parallel()
				w := s.world(t, r.rule)
				for _, part := range []int{1, 2, 63, 64, 65, 127, 128, 129, entries - 1, entries} {
					if part <= entries {
						r.run(w.fresh(), entries, part)
					}
				}
			})
		}
	}
}

const (
	logStep   = 10_000 // µs between entries
	logWindow = 60 * second
)

// A longLogRule is a rule for a log with entries of one unit every 10 ms, and a part of them.
type longLogRule struct {
	rule string
	run  func(w *world, entries, part int)
}

var longLogRules = []longLogRule{
	// A part of the list is removed at once, so the sum in the header must match the rest.
	{"exactly the entries that are a window old are forgotten, however many they are", func(w *world, entries, part int) {
		c := w.longLog(entries)
		w.to(int64(part-1)*logStep + logWindow - 1)
		w.remaining(c, int64(10_000-entries+part-1))
		w.to(int64(part-1)*logStep + logWindow)
		w.remaining(c, int64(10_000-entries+part))
		w.holds(c, logEntries(part, entries))
	}},
	// The limit is as large as the log, so a cost of part waits for the part oldest entries.
	{"the wait for any cost ends when enough of the oldest entries are a window old", func(w *world, entries, part int) {
		c := w.longLog(entries)
		c.Limit = algorithms.SlidingWindowLog(int64(entries), logWindow*µs)
		d := w.take(c.Limit, int64(part))
		want := time.Duration(int64(part-entries)*logStep+logWindow) * µs
		if d.Allowed || d.RetryAfter != want {
			w.errorf("cost %d: got %s, want RetryAfter %s", part, show(d), micros(want))
		}
		w.honest(w.on("", c.Limit, int64(part)))
	}},
	{"a Grant removes units from the newest entries, however many they are", func(w *world, entries, part int) {
		c := w.longLog(entries)
		d := w.one(as(algorithms.Grant, w.on("", c.Limit, int64(part))))
		if d.Remaining != int64(10_000-entries+part) {
			w.errorf("grant of %d: got %s", part, show(d))
		}
		w.holds(c, logEntries(0, entries-part))
		w.to(logWindow)
		w.remaining(c, min(10_000, int64(10_000-entries+part+1)))
	}},
	{"a returned take leaves the log, wherever in it its entry is", func(w *world, entries, part int) {
		limit := algorithms.SlidingWindowLog(10_000, logWindow*µs)
		taken := w.fill(limit, entries)[part-1]
		if d := w.one(back(taken, 1)); d.Remaining != int64(10_000-entries+1) {
			w.errorf("return of entry %d: got %s", part, show(d))
		}
		w.to(int64(part-1)*logStep + logWindow - 1)
		w.remaining(taken, int64(10_000-entries+part))
		w.to(int64(part-1)*logStep + logWindow)
		w.remaining(taken, int64(10_000-entries+part))
		w.to(int64(entries-1)*logStep + logWindow)
		w.full(taken)
	}},
	// Otherwise entries from the future would count until the clock has caught up with them. Entries up to 100 ms
	// ahead may come from a caller whose clock is ahead, and stay unchanged.
	{"after a step back all entries from the future are one entry at the present, with their sum", func(w *world, entries, part int) {
		c := w.longLog(entries)
		if part*logStep <= 100_000 {
			return // within the tolerance
		}
		now := int64(entries-1-part) * logStep
		w.to(now)
		if d := w.one(c); d.Remaining != int64(10_000-entries) || d.ResetAfter != logWindow*µs {
			w.errorf("%d entries from the future: got %s, want the same number remaining for a window",
				part, show(d))
		}
		w.holds(c, append(logEntries(0, entries-part), admission{now, int64(part)}))
		w.to(now + logWindow - 1)
		w.remaining(c, int64(10_000-part-min(1, entries-part))) // one was there already
		w.to(now + logWindow)
		w.full(c)
	}},
	// Entries are 10 ms apart. A window of (entries - part) steps reaches back to just behind entry part - 1.
	{"a shorter window forgets exactly what is older, however many entries that are", func(w *world, entries, part int) {
		c := w.longLog(entries)
		window := int64(entries-part) * logStep // entry i is as old at the last one's instant if i <= part - 1
		if window == 0 {
			return
		}
		c.Limit = algorithms.SlidingWindowLog(10_000, time.Duration(window)*µs)
		w.remaining(c, int64(10_000-entries+part))
		w.holds(c, logEntries(part, entries))
	}},
}

// longLog makes a log under 10 000 per minute, and returns a check of cost 0 on it.
func (w *world) longLog(entries int) algorithms.Check {
	w.Helper()
	c := w.on("", algorithms.SlidingWindowLog(10_000, logWindow*µs), 0)
	if w.s.Store == nil {
		w.fill(c.Limit, entries)
		return c
	}
	w.plant(c, listText(logEntries(0, entries)))
	w.to(int64(entries-1) * logStep)
	return c
}

// fill makes a log by taking, and returns the takes.
func (w *world) fill(limit algorithms.Limit, entries int) []algorithms.Check {
	w.Helper()
	var taken []algorithms.Check
	for i := range entries {
		w.to(int64(i) * logStep)
		taken = append(taken, w.allow(w.on("", limit, 1))[0])
	}
	w.holds(taken[0], logEntries(0, entries))
	return taken
}

// logEntries returns entries first to last of a long log, the last excluded.
func logEntries(first, last int) []admission {
	var entries []admission
	for i := first; i < last; i++ {
		entries = append(entries, admission{int64(i) * logStep, 1})
	}
	return entries
}

// holds wants exactly these entries in the store, if it can be seen, and a header that says so.
func (w *world) holds(c algorithms.Check, entries []admission) {
	w.Helper()
	if w.s.Store == nil {
		return
	}
	if got, want := w.s.Store.Stored(w, c), listText(entries); got != want {
		w.errorf("%v: got stored\n\t%s\nwant\n\t%s", c.Limit, got, want)
	}
}

// listText returns the list of a log.
func listText(entries []admission) string {
	if len(entries) == 0 {
		return ""
	}
	header := admission{at: entries[len(entries)-1].at}
	for _, e := range entries {
		header.units += e.units
	}
	var texts []string
	for _, e := range append([]admission{header}, entries...) {
		texts = append(texts, fmt.Sprintf("%d%03d", epoch+e.at, e.units))
	}
	return strings.Join(texts, " ")
}
