package algorithms_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// The counter assumes that the previous window's requests were spread evenly.
// What SlidingWindowCounter's doc says of its error is what this measures.
func TestSlidingWindowCounterError(t *testing.T) {
	const requests, window = 100, int64(60_000_000) // µs
	rng := rand.New(rand.NewPCG(1, 2))
	tests := []struct {
		name       string
		next       func(now int64) int64 // the instant of the next request
		atMost     int                   // admitted in any window whatsoever
		atLeast    int                   // the worst window, or the doc exaggerates
		meanWithin float64               // of the limit, per window, at overload
	}{
		{"steady at twice the limit", func(now int64) int64 { return now + window/200 }, 100, 100, 0.02},
		{"random at twice the limit", func(now int64) int64 { return now + int64(rng.ExpFloat64()*float64(window)/200) + 1 }, 105, 100, 0.02},
		{"all at the end of a window, then as fast as admitted", func(now int64) int64 {
			if now%(2*window) < window-1_000_000 { // idle till the last second of even windows
				return now - now%(2*window) + window - 1_000_000
			}
			return now + 5_000
		}, 199, 190, 0.02},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			admitted, span := admissions(t, algorithms.SlidingWindowCounter(requests, time.Minute), tt.next)
			worst := fullest(admitted, window)
			mean := float64(len(admitted)) * float64(window) / float64(span) / requests
			t.Logf("fullest window %d, mean %.3f of the limit", worst, mean)
			if worst > tt.atMost || worst < tt.atLeast {
				t.Errorf("got %d in the fullest window, want %d to %d", worst, tt.atLeast, tt.atMost)
			}
			if mean < 1-tt.meanWithin || mean > 1+tt.meanWithin {
				t.Errorf("got a mean of %.3f of the limit, want within %.2f of 1", mean, tt.meanWithin)
			}
		})
	}
}

// admissions returns the instants of the requests that limit admits over 40
// windows, and how long that was.
func admissions(t *testing.T, limit algorithms.Limit, next func(int64) int64) (admitted []int64, span int64) {
	t.Helper()
	start := int64(1_763_729_400_000_000)
	now := start
	m := algorithms.Must(algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(now) }}))
	t.Cleanup(func() { _ = m.Close() })
	for end := start + 40*limit.Window().Microseconds(); now < end; now = next(now) {
		d, err := algorithms.Allow(context.Background(), m, "usr=1", limit)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted = append(admitted, now)
		}
	}
	return admitted, now - start
}

// fullest returns the most instants that any window holds.
func fullest(instants []int64, window int64) (most int) {
	first := 0
	for i, at := range instants {
		for at-instants[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
