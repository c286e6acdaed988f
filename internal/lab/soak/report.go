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

	rows []row

	mu     sync.Mutex
	broken int
}

// A row is the summary of a leg.
type row struct {
	*leg
	tally
	audited      int // keys
	closedIn     time.Duration
	slowest, net time.Duration // the longest call, with and without stalls of the machine
	fullest      claim         // nearest to its bound
}

// say prints a line.
func (r *report) say(leg, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(leg, format, args...)
}

// fail notes a promise that was broken.
func (r *report) fail(leg, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken++; r.broken <= maxPrinted {
		r.print(leg, "BROKEN "+format, args...)
	}
}

// print requires mu.
func (r *report) print(leg, format string, args ...any) {
	fmt.Fprintf(r.out, "%7.1f s  %-16s  %s\n", time.Since(r.start).Seconds(), leg, fmt.Sprintf(format, args...))
}

// summary prints a table with a line per leg.
func (r *report) summary() {
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nleg\tevents\tlosses\ttrips\tcalls\tlocal\tpassed\trefused\thung up\thanded back\tlost\taudited\tfullest\tclosed in\tslowest\tnet")
	for _, w := range r.rows {
		fmt.Fprintf(table, "%v\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%d ms\t%d ms\t%d ms\n",
			w.leg, w.events.Load(), w.losses.Load(), w.trips, w.calls.Load(), w.local, w.passed, w.refused.Load(), w.hungUp.Load(), w.handedBack,
			w.lost, w.audited, w.fullest, w.closedIn.Milliseconds(), w.slowest.Milliseconds(), w.net.Milliseconds())
	}
	_ = table.Flush()
	fmt.Fprintf(r.out, "\n%d promises broken\n", r.broken)
}
