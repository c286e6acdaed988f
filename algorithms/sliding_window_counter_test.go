// How far the sliding window counter is from the log.

package algorithms_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// The counter assumes that the previous window's requests were spread evenly.
// This test measures the errors that SlidingWindowCounter's documentation
// states.
func TestSlidingWindowCounterError(t *testing.T) {
	const requests, window = 100, int64(60_000_000) // µs
	rng := rand.New(rand.NewPCG(1, 2))
	steady := func(now int64) int64 { return now + window/200 }
	tests := []struct {
		name    string
		next    func(now int64) int64 // the instant of the next request
		skip    int64                 // windows before it counts
		atMost  int                   // admitted in any window whatsoever
		atLeast int                   // in the fullest, or the doc exaggerates
	}{
		{"steady at twice the limit", steady, 2, 100, 99},
		{"random at twice the limit", func(now int64) int64 {
			return now + int64(rng.ExpFloat64()*float64(window)/200) + 1
		}, 2, 105, 101},
		{"random at the limit", func(now int64) int64 {
			return now + int64(rng.ExpFloat64()*float64(window)/100) + 1
		}, 2, 112, 106},
		{"steady, begun in the middle of a window", steady, 0, 150, 145},
		{"all at the end of a window, then as soon as admitted", func(now int64) int64 {
			switch at := now % (2 * window); {
			case at < window-1_000_000: // idle till the last second of even windows
				return now - at + window - 1_000_000
			case at < window:
				return now + 5_000
			default:
				return now + 50_000
			}
		}, 0, 199, 190},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			admitted, span := admissions(t, algorithms.SlidingWindowCounter(requests, time.Minute), tt.next)
			for len(admitted) > 0 && admitted[0] < epoch+tt.skip*window {
				admitted = admitted[1:]
			}
			span -= tt.skip * window
			worst := fullest(admitted, window)
			mean := float64(len(admitted)) * float64(window) / float64(span) / requests
			t.Logf("fullest window %d, mean %.3f of the limit", worst, mean)
			if worst > tt.atMost || worst < tt.atLeast {
				t.Errorf("got %d in the fullest window, want %d to %d", worst, tt.atLeast, tt.atMost)
			}
			if mean < 0.92 || mean > 1.01 {
				t.Errorf("got a mean of %.3f of the limit, want about 1", mean)
			}
		})
	}
}

// admissions returns the instants of the requests that limit admits over 40
// windows, and how long that was.
func admissions(t *testing.T, limit algorithms.Limit, next func(int64) int64) (admitted []int64, span int64) {
	t.Helper()
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
	now, end := int64(epoch), epoch+40*limit.Window().Microseconds()
	for ; now < end; now = next(now) {
		clock.µs.Store(now)
		d, err := algorithms.Allow(context.Background(), m, "usr=1", limit)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted = append(admitted, now)
		}
	}
	return admitted, now - epoch
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

// The worst case is one less than twice the limit: all at the last instant of a
// window, and each of the others as soon as it is admitted.
func TestSlidingWindowCounterWorstCase(t *testing.T) {
	for _, requests := range []int64{1, 2, 5, 30, 100} {
		clock := newClock()
		limit := algorithms.SlidingWindowCounter(requests, time.Minute)
		m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
		turn := int64(epoch/60_000_000+1) * 60_000_000
		var admitted []int64
		for now := turn - 1; now < turn+60_000_000; {
			clock.µs.Store(now)
			d, err := algorithms.Allow(context.Background(), m, "usr=1", limit)
			if err != nil {
				t.Fatal(err)
			}
			if now += d.RetryAfter.Microseconds(); d.Allowed {
				admitted = append(admitted, now)
			}
		}
		if got, want := fullest(admitted, 60_000_000), int(2*requests-1); got != want {
			t.Errorf("of %d: got %d in the fullest window, want %d", requests, got, want)
		}
	}
}

// The counter denies requests that a log would admit. Of bursts of the whole
// limit it denies nearly a third if they come a little more than a window
// apart, and a quarter at a window and a half.
func TestSlidingWindowCounterDeniesBursts(t *testing.T) {
	const requests, window = 100, int64(60_000_000) // µs
	for _, tt := range []struct {
		every       int64
		least, most float64
	}{{window * 101 / 100, 0.30, 0.33}, {window * 3 / 2, 0.24, 0.26}} {
		clock := newClock()
		m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
		limit, denied := algorithms.SlidingWindowCounter(requests, time.Minute), 0
		const bursts = 200
		for i := range int64(bursts) {
			clock.µs.Store(epoch + i*tt.every)
			for range requests {
				d, err := algorithms.Allow(context.Background(), m, "usr=1", limit)
				if err != nil {
					t.Fatal(err)
				}
				if !d.Allowed {
					denied++
				}
			}
		}
		if got := float64(denied) / (bursts * requests); got < tt.least || got > tt.most {
			t.Errorf("bursts every %v: got %.3f denied, want %.2f to %.2f", time.Duration(tt.every)*time.Microsecond, got, tt.least, tt.most)
		}
	}
}
