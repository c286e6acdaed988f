package main

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"
)

// maxPrinted is how many broken promises are printed at most.
const maxPrinted = 40

// A report prints a line per trouble and per broken promise, and a table in the end.
type report struct {
	out   io.Writer
	start time.Time

	mu     sync.Mutex
	broken int
	rows   []row
}

// A row is the summary of an act.
type row struct {
	topology, act          string
	events, losses         int64
	calls, refused, hungUp int64
	once                   int // keys that were audited
	closedAfter            time.Duration
	lateness               lateness
	fullest, together      claim // nearest to their bounds
	beyond                 int   // keys above the bound of together
	tally                  tally
}

// say prints a line.
func (r *report) say(topology, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(topology, format, args...)
}

// fail notes a promise that was broken.
func (r *report) fail(topology, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken++; r.broken <= maxPrinted {
		r.print(topology, "BROKEN "+format, args...)
	}
}

// print requires mu.
func (r *report) print(topology, format string, args ...any) {
	fmt.Fprintf(r.out, "%7.1f s  %-10s  %s\n", time.Since(r.start).Seconds(), topology, fmt.Sprintf(format, args...))
}

func (r *report) add(row row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
}

// summary prints a table with a line per act.
func (r *report) summary() {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\ntopology\tact\tevents\tlosses\ttrips\tcalls\tlocal\tpassed\trefused\thung up\thanded back\tlost\taudited"+
		"\tfullest\tbeyond\ttogether\tclosed in\tslowest\tnet\tstalls\tlongest")
	for i := range r.rows {
		w := &r.rows[i]
		t := &w.tally
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%d\t%v\t%s\t%s\t%s\t%s\t%s\n",
			w.topology, w.act, w.events, w.losses, t.trips, w.calls, t.local, t.passed, w.refused, w.hungUp, t.handedBack, t.lost, w.once,
			w.fullest, w.beyond, w.together, millis(w.closedAfter), millis(w.lateness.slowest), millis(w.lateness.net),
			millis(w.lateness.stalls), millis(w.lateness.longest))
	}
	_ = table.Flush()
	fmt.Fprintf(r.out, "\n%d promises broken\n", r.broken)
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds(), " ms") }
