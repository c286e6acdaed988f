package main

import (
	"strings"
	"testing"
)

// A peer that is better by more than a tenth is named, whatever direction is better.
func TestLossesAreNamed(t *testing.T) {
	r := newReport(options{})
	m := &measure{title: "here", figures: []figure{checksPerSecond, p50, p99, serverCPU}, contestants: []contestant{{name: us}, {name: "rueidis"}, {name: "a plain map"}}}
	r.add(m, [][]sample{
		{{checksPerSecond: 100, p50: 11, p99: 30, serverCPU: 5}},
		{{checksPerSecond: 150, p50: 10, p99: 20, serverCPU: 4}},
		{{checksPerSecond: 900, p50: 1, p99: 1, serverCPU: 1}},
	})
	var got strings.Builder
	r.losses(&got)
	want := "- here, checks: 1.50 times as good with rueidis\n" +
		"- here, p99 latency: 1.50 times as good with rueidis\n" +
		"- here, Redis CPU per check: 1.25 times as good with rueidis\n"
	if !strings.HasSuffix(got.String(), "\n\n"+want) {
		t.Errorf("got %q, want a list of %q", got.String(), want)
	}
}
