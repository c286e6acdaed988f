// The tables.

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	resultsFile = "RESULTS.md"

	shown = 1  // the seed of the tables and plots
	seeds = 10 // the bars use seeds 0 to 9
)

const resultsHead = `# Results

%s writes this page. Time is simulated, and everything else is the real middleware. ` + "`doc.go`" + ` has the settings,
the kinds and the columns. The tables show seed %d. The bars hold for the worst of %d seeds. The rows with "transport" and "Pace" use
the real Transport of package client. Its jitter has no seed, so these rows differ a little each time.
`

const quotaNotes = `
The last column compares the denials with exponential backoff. The paper reports a reduction by 97.3 %% for its best adaptive clients, in its own traffic.

- A client that only obeys Retry-After cannot do better than about one denial per success here. It learns of its next turn only from a denial.
- Exponential backoff has few denials because its clients still sleep when the limit has room: it takes %.1f times the ideal.
- Pacing spreads requests over the quota that a response advertises. A shared limit advertises the quota of all clients together, so pacing
  alone does not replace slots.
`

// simulatedPage simulates everything. The error says which bars are missed.
func simulatedPage(t *testing.T) (string, error) {
	var page strings.Builder
	fmt.Fprintf(&page, resultsHead, "`make herd`", shown, seeds)
	for _, s := range []setting{oneSuccess, sharedQuota} {
		var results []result
		for _, k := range kindsOf[s.name] {
			r := simulate(t, s, k, shown)
			if r.failed != nil {
				return "", fmt.Errorf("%s: %s: %w", s.name, k.name, r.failed)
			}
			results = append(results, r)
		}
		fmt.Fprintf(&page, "\n## %s\n\n", s.title)
		page.WriteString(table(results, find(results, doubling.name)))
		if against := find(results, doubling.name); against != nil {
			fmt.Fprintf(&page, quotaNotes, timeOfIdeal(s, against))
		}
	}
	page.WriteString(accounts(t))
	rows, err := barRows(t)
	page.WriteString("\n## Bars\n\n| setting | slots, and clients that only obey Retry-After | worst | at most | |\n| --- | --- | ---: | ---: | --- |\n" + rows)
	return page.String(), err
}

// unseeded reports whether a line names a kind whose figures do not depend on the seed alone.
func unseeded(line string) bool {
	return strings.Contains(line, slotsOurs.name) || strings.Contains(line, slotsPaced.name) || strings.Contains(line, accountOurs.name) ||
		strings.Contains(line, "retryablehttp |") || strings.Contains(line, "client.Transport |") || strings.HasPrefix(line, "| every ")
}

// table returns a row for each result. If against is not nil, a further column compares the denials with it.
func table(results []result, against *result) string {
	head, line := "| Retry-After | requests per success | denials | denials per success | all served | peak per second |", "| --- | ---: | ---: | ---: | ---: | ---: |"
	if against != nil {
		head, line = head+" denials against backoff |", line+" ---: |"
	}
	var b strings.Builder
	b.WriteString(head + "\n" + line + "\n")
	for i := range results {
		r := &results[i]
		fmt.Fprintf(&b, "| %s | %.2f | %d | %.2f | %.1f s | %d |",
			r.kind, r.perSuccess(r.requests), r.denied(), r.perSuccess(r.denied()), r.done.Round(time.Millisecond).Seconds(), r.peak())
		if against != nil {
			fmt.Fprintf(&b, " %+.0f %% |", 100*(float64(r.denied())/float64(against.denied())-1))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// find returns the result of a kind, or nil.
func find(results []result, kind string) *result {
	for i := range results {
		if results[i].kind == kind {
			return &results[i]
		}
	}
	return nil
}

// barRows returns a row for each bar. The error names the bars that are missed.
func barRows(t *testing.T) (string, error) {
	var rows strings.Builder
	var errs []error
	for _, s := range []setting{oneSuccess, sharedQuota} {
		results := make([]result, seeds)
		for seed := range results {
			results[seed] = simulate(t, s, slots, uint64(seed))
		}
		for _, b := range bars {
			if b.setting.name != s.name {
				continue
			}
			verdict, err := "met", b.miss(results)
			if err != nil {
				verdict = "**missed**"
				errs = append(errs, err)
			}
			fmt.Fprintf(&rows, "| %s | %s | "+b.format+" | %v | %s |\n", s.name, b.text, b.worst(results), b.limit, verdict)
		}
	}
	return rows.String(), errors.Join(errs...)
}
