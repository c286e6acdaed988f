package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sampled returns samples of a figure, one slice per contestant.
func sampled(f figure, contestants ...[]float64) (all [][]sample) {
	for _, values := range contestants {
		var samples []sample
		for _, v := range values {
			samples = append(samples, sample{f: v})
		}
		all = append(all, samples)
	}
	return all
}

// Each row of the first table names a figure and contestants of a measure.
func TestChoicesAreMeasured(t *testing.T) {
	for _, c := range choices {
		i := slices.IndexFunc(measures, func(m measure) bool { return m.name == c.measure })
		if i < 0 {
			t.Errorf("%s: there is no measure %s", c.text, c.measure)
			continue
		}
		if !slices.Contains(measures[i].figures, c.figure) {
			t.Errorf("%s: %s does not report %s", c.text, c.measure, c.figure.name)
		}
		for _, name := range append(c.peers, us) {
			if measures[i].index(name) < 0 {
				t.Errorf("%s: %s has no contestant %s", c.text, c.measure, name)
			}
		}
	}
}

// A row shows medians, and the better figure of a peer is bold.
func TestRowsShowBetterPeers(t *testing.T) {
	m := measure{name: "memory", contestants: []contestant{{name: us}, {name: "go-limiter"}, {name: "x/time/rate in a map"}}}
	p := &page{options: options{only: regexp.MustCompile("")}, results: []result{{m, sampled(perCheck, []float64{20, 40, 30}, []float64{25, 25, 90}, []float64{99, 31, 20})}}}
	want := "| --- |\n| a check in memory | time per check | 30.0 ns | **25.0 ns** go-limiter; 31.0 ns x/time/rate in a map |\n\n"
	if got := p.String(); !strings.Contains(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Measures with the same title share a table, with a row per figure. A missing figure is a dash.
func TestTables(t *testing.T) {
	few := measure{title: "Redis", at: "one caller", figures: []figure{p50, p99}, contestants: []contestant{{name: us}, {name: "a"}}}
	many := few
	many.at = "8 callers"
	p := &page{results: []result{
		{few, sampled(p50, []float64{1, 2, 3}, []float64{4})},
		{many, sampled(p99, []float64{1_000}, []float64{12.34})},
		{measure{title: "Memory", figures: []figure{perCheck}, contestants: few.contestants[:1]}, sampled(perCheck, []float64{7})},
	}}
	var got strings.Builder
	p.tables(&got)
	want := "\n## Redis\n\n| | penstock | a |\n| --- | ---: | ---: |\n" +
		"| one caller, median latency | 2.00 µs | 4.00 µs |\n| one caller, p99 latency | – | – |\n" +
		"| 8 callers, median latency | – | – |\n| 8 callers, p99 latency | 1 000 µs | 12.3 µs |\n" +
		"\n## Memory\n\n| | penstock |\n| --- | ---: |\n| time per check | 7.00 ns |\n"
	if got.String() != want {
		t.Errorf("got %swant %s", got.String(), want)
	}
}

// A peer that is better by more than a tenth is named, whatever direction is better.
func TestLossesAreNamed(t *testing.T) {
	m := measure{title: "here", why: "Because.", figures: comparedFigures, contestants: []contestant{{name: us}, {name: "rueidis"}, {name: "penstock without Ahead"}}}
	p := &page{results: []result{{m, [][]sample{
		{{checksPerSecond: 100, p50: 11, p99: 30, serverCPU: 5}},
		{{checksPerSecond: 150, p50: 10, p99: 20, serverCPU: 4}},
		{{checksPerSecond: 900, p50: 1, p99: 1, serverCPU: 1}},
	}}}}
	var got strings.Builder
	p.losses(&got)
	want := "\n\n- **here**: checks 1.50 (rueidis); p99 latency 1.50 (rueidis); Redis CPU per check 1.25 (rueidis). Because.\n"
	if !strings.HasSuffix(got.String(), want) {
		t.Errorf("got %q, want a list of %q", got.String(), want)
	}
}

// Two peers that are better in turn are not better than either of them.
func TestTheBestPeerIsOneOfAllRounds(t *testing.T) {
	r := result{measure{contestants: []contestant{{name: us}, {name: "a"}, {name: "b"}}},
		sampled(p50, []float64{10, 10, 10}, []float64{5, 10, 12}, []float64{12, 5, 9})}
	want := 10.0 / 9 // b is better than penstock in more rounds than a
	if name, got := r.bestPeer(p50); name != "b" || math.Abs(got-want) > 1e-9 {
		t.Errorf("got %v with %s, want %v with b", got, name, want)
	}
}

// A figure above its most is overdone, and so is a figure that was not measured.
func TestOverdone(t *testing.T) {
	for _, c := range []struct {
		value float64
		over  bool
	}{{0, false}, {1, true}, {math.NaN(), true}} {
		m := measure{name: "memory", most: map[figure]float64{allocations: 0}, contestants: []contestant{{name: us}}}
		p := &page{results: []result{{m, sampled(allocations, []float64{c.value})}}}
		if err := p.overdone(); (err != nil) != c.over {
			t.Errorf("%v: got error %v", c.value, err)
		}
	}
}

// The stored page has the rows of this program, and its tables have the same figures.
func TestStoredResults(t *testing.T) {
	text, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n\nA **bold**")
	rows := strings.Split(first, "\n")[4:]
	if len(rows) != len(choices) {
		t.Fatalf("got %d rows, want %d", len(rows), len(choices))
	}
	number := regexp.MustCompile(`\d[\d .]*`)
	for i, c := range choices {
		figures, found := strings.CutPrefix(rows[i], fmt.Sprintf("| %s | %s | ", c.text, c.figure.name))
		if !found {
			t.Errorf("got row %s, want %s, %s", rows[i], c.text, c.figure.name)
		}
		for _, n := range number.FindAllString(figures, -1) {
			if !strings.Contains(rest, "| "+strings.TrimSpace(n)+" ") {
				t.Errorf("%s: %s stands in no table", c.text, n)
			}
		}
	}
	for _, m := range measures {
		for _, f := range m.figures {
			if !strings.Contains(rest, "\n## "+m.title+"\n") || !strings.Contains(rest, "\n| "+m.label(f)+" |") {
				t.Errorf("RESULTS.md has no row of %s, %s", m.title, m.label(f))
			}
		}
	}
}
