package main

import (
	"strings"
	"testing"
)

// A peer that is better by more than a tenth is named, whatever direction is better.
func TestLossesAreNamed(t *testing.T) {
	r := newReport(options{})
	m := &measure{title: "here", figures: []figure{checksPerSecond, p50}, contestants: []contestant{{name: us}, {name: "rueidis"}, {name: "a plain map"}}}
	r.add(m, [][]sample{
		{{checksPerSecond: 100, p50: 11}}, {{checksPerSecond: 150, p50: 10}}, {{checksPerSecond: 900, p50: 1}},
	})
	var got strings.Builder
	r.losses(&got)
	if want := "- here, checks: 1.50 times as good with rueidis\n"; !strings.HasSuffix(got.String(), "\n\n"+want) {
		t.Errorf("got %q, want a list of %q", got.String(), want)
	}
}
