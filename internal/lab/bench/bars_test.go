package main

import (
	"math"
	"strings"
	"testing"
)

func TestBarIsMet(t *testing.T) {
	for _, c := range []struct {
		bar   bar
		value float64
		met   bool
	}{
		{bar{atMost: 1.1}, 1.1, true},
		{bar{atMost: 1.1}, 1.11, false},
		{bar{atMost: 0}, 0, true},
		{bar{atMost: 0}, 1, false},
		{bar{atLeast: 2}, 2, true},
		{bar{atLeast: 2}, 1.99, false},
		{bar{atMost: 1.1}, math.NaN(), false},
		{bar{atLeast: 2}, math.NaN(), false},
	} {
		if got := c.bar.met(c.value); got != c.met {
			t.Errorf("%s: %v: got %v", c.bar.want(), c.value, got)
		}
	}
}

// Two bars of a group share a row, which shows the worse one. A ratio compares with
// one peer in each round, and the median round decides.
func TestSummaryShowsTheWorstOfAGroup(t *testing.T) {
	r := newReport(options{})
	figures := func(ours, a, b []float64) (results [][]sample) {
		for _, values := range [][]float64{ours, a, b} {
			var samples []sample
			for _, v := range values {
				samples = append(samples, sample{p50: v})
			}
			results = append(results, samples)
		}
		return results
	}
	bars := []bar{{figure: p50, against: []string{"a", "b"}, atMost: 1.1, group: "all"}}
	few := &measure{title: "few", curve: true, contestants: []contestant{{name: us}, {name: "a"}, {name: "b"}}, bars: bars}
	many := &measure{title: "many", curve: true, contestants: few.contestants, bars: bars}
	r.add(few, figures([]float64{10, 10, 90}, []float64{10, 10, 10}, []float64{20, 20, 20}))
	r.add(many, figures([]float64{30, 30, 30}, []float64{20, 10, 20}, []float64{40, 20, 20}))
	if got := r.verdicts[0].value; got != 1 {
		t.Errorf("few: got %v, want the median ratio 1", got)
	}
	if got := r.verdicts[1].value; got != 1.5 {
		t.Errorf("many: got %v, want the median ratio 1.5", got)
	}
	var summary strings.Builder
	r.summary(&summary)
	want := "| all; the worst: many | median latency | 30.0 µs | 20.0 µs, a | 1.50 | at most 1.1 | **missed** in 1 of 2 |\n"
	if got := summary.String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// Two peers that are better in turn are not better than either of them.
func TestTheBestPeerIsOneOfAllRounds(t *testing.T) {
	m := &measure{contestants: []contestant{{name: us}, {name: "a"}, {name: "b"}}}
	var results [][]sample
	for _, values := range [][]float64{{10, 10, 10}, {5, 10, 12}, {12, 5, 9}} {
		var samples []sample
		for _, v := range values {
			samples = append(samples, sample{p50: v, checksPerSecond: 1 / v})
		}
		results = append(results, samples)
	}
	for _, b := range []bar{
		{figure: p50, against: []string{"a", "b"}, atMost: 1.1},
		{figure: checksPerSecond, against: []string{"a", "b"}, atLeast: 0.9},
	} {
		want := 10.0 / 9 // to b, which is better than us in more rounds than a
		if b.figure.more {
			want = 1 / want
		}
		if name, got := m.best(results, b); name != "b" || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v to %s, want %v to b", b.figure.name, got, name, want)
		}
	}
}
