package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each row of RESULTS.md names a figure and contestants of a measure.
func TestChoicesAreMeasured(t *testing.T) {
	if len(choices) > 15 {
		t.Errorf("RESULTS.md opens with %d rows, want at most 15", len(choices))
	}
	for _, c := range choices {
		i := slices.IndexFunc(measures, func(m measure) bool { return m.name == c.measure })
		if i < 0 {
			t.Errorf("%s: there is no measure %s", c.text, c.measure)
			continue
		}
		if !slices.Contains(measures[i].figures, c.figure) {
			t.Errorf("%s: %s does not report %s", c.text, c.measure, c.figure.name)
		}
		for _, name := range append(c.peers, bar{who: c.who}.whose()) {
			if measures[i].index(name) < 0 {
				t.Errorf("%s: %s has no contestant %s", c.text, c.measure, name)
			}
		}
	}
}

// A row shows medians. The better figure of a peer is bold, and a peer that did not run is missing.
func TestResultsShowBetterPeers(t *testing.T) {
	r := newReport(options{})
	m := &measure{name: "memory", contestants: []contestant{{name: us}, {name: "go-limiter"}}}
	r.add(m, [][]sample{{{perCheck: 20}, {perCheck: 40}, {perCheck: 30}}, {{perCheck: 25}, {perCheck: 25}, {perCheck: 90}}})
	page := r.results()
	if want := "| --- |\n| a check in memory | time per check | 30.0 ns | **25.0 ns** go-limiter |\n\n"; !strings.Contains(page, want) {
		t.Errorf("got\n%swant\n%s", page, want)
	}
	if strings.Contains(page, ".svg") {
		t.Errorf("got a plot without points:\n%s", page)
	}
}

// The stored RESULTS.md has the rows and the plots of this program, and its figures stand in MEASUREMENTS.md.
func TestStoredResults(t *testing.T) {
	results, measurements := read(t, resultsFile), read(t, measurementsFile)
	var rows []string
	for line := range strings.Lines(results) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, line)
		}
	}
	if len(rows) != len(choices) {
		t.Fatalf("got %d rows, want %d", len(rows), len(choices))
	}
	number := regexp.MustCompile(`\d[\d .]*`)
	for i, c := range choices {
		want := fmt.Sprintf("| %s | %s | ", c.text, c.figure.name)
		figures, found := strings.CutPrefix(rows[i], want)
		if !found {
			t.Errorf("got row %s, want %s", rows[i], want)
		}
		for _, n := range number.FindAllString(figures, -1) {
			if !strings.Contains(measurements, "| "+strings.TrimSpace(n)+" ") {
				t.Errorf("%s: %s does not stand in %s", c.text, n, measurementsFile)
			}
		}
	}
	for _, p := range plots {
		if read(t, p.file()) == "" || !strings.Contains(results, "]("+p.file()+")") {
			t.Errorf("%s does not show %s", resultsFile, p.file())
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
