package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// The drawing is well-formed, shows all values between its top and its bottom, and
// leaves out points that were not measured.
func TestPlot(t *testing.T) {
	var points []point
	for i, values := range [][2]float64{{120, 0}, {90_000, 7}, {1_000, 1_000}} {
		m := &measure{plan: plan{callers: 1 << i}, contestants: []contestant{{name: us}, {name: "a & b"}}}
		var results [][]sample
		for _, v := range values {
			s := sample{}
			if v > 0 {
				s[p99] = v
			}
			results = append(results, []sample{s})
		}
		points = append(points, point{m, results})
	}
	svg := plot{p99, near}.svg(points)
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	// The axis goes from 1 to 100 000, so a power of ten is 60 high.
	for _, want := range []string{`d="M84.0 211.2L337.0 38.7L590.0 156.0"`, `d="M337.0 285.3L590.0 156.0"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}
