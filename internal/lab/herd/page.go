package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	shown = 1  // the seed of the tables
	seeds = 10 // the bars use seeds 0 to 9
)

const pageHead = `# Results

%s writes this page. Time is simulated, and everything else is the real middleware. ` + "`doc.go`" + ` has the settings,
the kinds and the columns. The tables show seed %d. The bars hold for the worst of %d seeds. The jitter of client.Transport and of
go-retryablehttp has no seed, so their rows differ a little each time.
`

const quotaNotes = `
- A client that only obeys Retry-After cannot do better than about one denial per success here. It learns of its next turn only from a denial.
- Exponential backoff has few denials because its clients still sleep when the limit has room.
- Pacing spreads requests over the quota that a response advertises. A shared limit advertises the quota of all clients together, so pacing
  alone does not replace slots.
`

// page simulates everything. Bars that are missed fail t.
func page(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	fmt.Fprintf(&page, pageHead, "`make herd`", shown, seeds)
	for _, s := range []setting{oneSuccess, sharedQuota} {
		fmt.Fprintf(&page, "\n## %s\n\n| Retry-After | requests per success | denials | denials per success | all served | peak per second |\n"+
			"| --- | ---: | ---: | ---: | ---: | ---: |\n", s.title)
		for _, k := range kindsOf[s.name] {
			r := simulate(t, s, k, shown)
			fmt.Fprintf(&page, "| %s | %.2f | %d | %.2f | %.1f s | %d |\n",
				r.kind, r.perSuccess(r.requests), r.denied(), r.perSuccess(r.denied()), r.done.Round(time.Millisecond).Seconds(), r.peak())
		}
	}
	page.WriteString(quotaNotes)
	accounts(t, &page)
	page.WriteString("\n## Bars\n\n| setting | slots, and clients that only obey Retry-After | worst | at most | |\n| --- | --- | ---: | ---: | --- |\n")
	barRows(t, &page)
	return page.String()
}

// accounts writes the table of the workers of one account.
func accounts(t *testing.T, page *strings.Builder) {
	t.Helper()
	page.WriteString("\n## One account: each worker has 20 calls with three attempts\n\nThe calls that fail, by the number of workers. The last column has no bound on attempts.\n\n| limit, waits, client |")
	for _, n := range crews {
		fmt.Fprintf(page, " %d |", n)
	}
	page.WriteString(" requests per success, 30 workers |\n| --- |" + strings.Repeat(" ---: |", len(crews)+1) + "\n")
	for _, k := range teams {
		fmt.Fprintf(page, "| %s |", k.name)
		for _, n := range crews {
			r := simulate(t, crew(n), k, shown)
			fmt.Fprintf(page, " %.1f %% |", 100*float64(r.failed)/float64(r.failed+r.served))
		}
		patient := crew(30)
		patient.attempts = endless
		r := simulate(t, patient, k, shown)
		fmt.Fprintf(page, " %.2f |\n", r.perSuccess(r.requests))
	}
	page.WriteString("\nA hundred workers want more than 60 per minute admits in three waits.\n")
}

// barRows writes a row for each bar.
func barRows(t *testing.T, page *strings.Builder) {
	t.Helper()
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
				t.Error(err)
			}
			fmt.Fprintf(page, "| %s | %s | "+b.format+" | %v | %s |\n", s.name, b.text, b.worst(results), b.limit, verdict)
		}
	}
}
