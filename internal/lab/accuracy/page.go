package main

import (
	"fmt"
	"strings"
)

const intro = `# How exact each algorithm is

<!-- make accuracy writes this page. -->

Each algorithm decides requests of one client, under limits of 5, 20, 100, 1 000 and 10 000 per minute. After each request, an exact
log says how many requests the algorithm has admitted in the last 60 s. The figures are in percent of the limit, over every such window:

| column | meaning |
|---|---|
| too much, worst | the fullest window had so much more than the limit |
| too much, mean | the same, as the mean over all windows; windows within the limit count as 0 |
| too little, worst | a request was denied, though the window before it had so much less than the limit |
| too little, mean | the same, as the mean over all requests; admitted requests count as 0 |
| admitted | of what an exact log would have admitted from the same requests |

A bucket does not promise a count per window: it admits its burst and its rate, and then denies what a log would admit. A burst of a fifth makes its windows
nearly exact. A fixed window counts minutes of the clock.

| traffic | requests |
|---|---|
`

// page runs everything, and returns the page.
func page() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, s := range shapes {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.describes)
	}
	b.WriteString("\n## All limits together\n\nThe worst of the five limits, and the mean of their means.\n\n")
	for _, s := range subjects {
		fmt.Fprintf(&b, "### %s\n\n| traffic |%s", s.name, head)
		for _, sh := range shapes {
			fmt.Fprintf(&b, "| %s |%s\n", sh.name, together(runAll(s, sh)))
		}
		b.WriteString("\n")
	}
	b.WriteString("## SlidingWindowCounter, each limit\n\n| traffic | limit |" + strings.Replace(head, "|---|", "|---|---|", 1))
	for _, sh := range shapes {
		for i, f := range runAll(subjects[0], sh) {
			fmt.Fprintf(&b, "| %s | %d |%s\n", sh.name, limits[i], f)
		}
	}
	return b.String()
}

const head = ` too much, worst | mean | too little, worst | mean | admitted |
|---|---|---|---|---|---|
`

// Figures are in percent of the limit.
type figures struct{ most, above, least, below, admitted float64 }

func (f figures) String() string {
	return fmt.Sprintf(" %.1f %% | %.2f %% | %.1f %% | %.2f %% | %.1f %% |", f.most, f.above, f.least, f.below, f.admitted)
}

// runAll runs all limits, under the requests of 20 to 400 minutes.
func runAll(s subject, sh shape) (all []figures) {
	for _, n := range limits {
		r := newRun(s.make(n))
		sh.send(r, max(20, min(400, 100_000/n)))
		all = append(all, r.figures())
	}
	return all
}

func (r *run) figures() figures {
	limit := r.limit.Requests()
	percent := func(n, of int64) float64 { return 100 * float64(n) / float64(max(1, of)) }
	return figures{
		most: percent(max(0, r.most-limit), limit), above: percent(r.above, limit*r.requests),
		least: percent(limit-r.least, limit), below: percent(r.below, limit*r.requests),
		admitted: percent(r.admitted, r.logged),
	}
}

// together returns the worst of the worst figures, and the mean of the others.
func together(all []figures) (t figures) {
	n := float64(len(all))
	for _, f := range all {
		t.most, t.least = max(t.most, f.most), max(t.least, f.least)
		t.above, t.below, t.admitted = t.above+f.above/n, t.below+f.below/n, t.admitted+f.admitted/n
	}
	return t
}
