// The cases in which penstock loses, for RESULTS.md.

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A loss of more than lossAbove is named.
const lossAbove = 1.1

// comparedFigures are the figures in which a service or its operator would notice a loss.
var comparedFigures = []figure{checksPerSecond, p50, p99, serverCPU, perCheck, bytesPerKey}

// losses writes each measure and figure in which a peer is better by more than a tenth.
func (r *report) losses(b *strings.Builder) {
	title := "\npenstock loses by more than a tenth in these cases, as the median of the ratios of each round:\n\n"
	for _, p := range r.measured {
		for _, f := range comparedFigures {
			if !slices.Contains(p.measure.figures, f) {
				continue
			}
			if name, factor := p.bestPeer(f); factor > lossAbove {
				fmt.Fprintf(b, "%s- %s, %s: %.2f times as good with %s\n", title, p.measure.title, f.name, factor, name)
				title = ""
			}
		}
	}
}

// bestPeer returns the peer whose figure is best, and how many times as good as
// penstock's it is.
func (p point) bestPeer(f figure) (name string, factor float64) {
	for _, c := range p.measure.contestants {
		if !isPeer(c.name) || p.measure.index(us) < 0 {
			continue
		}
		v := p.measure.value(p.results, bar{figure: f, against: []string{c.name}})
		if f.more {
			v = 1 / v
		}
		if !math.IsNaN(v) && v > factor {
			name, factor = c.name, v
		}
	}
	return name, factor
}

// isPeer reports whether a contestant limits, and is not penstock in another form.
func isPeer(name string) bool {
	return slices.Contains([]string{
		"redis_rate", "redis_rate, 256 connections", "rueidis", "autopipeline", "throttled", "ulule/limiter", "go-limiter", "httprate", "x/time/rate in a map",
	}, name)
}
