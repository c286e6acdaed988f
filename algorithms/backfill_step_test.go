package algorithms

import (
	"testing"
	"time"
)

// A backfill counts in the window of its own instant.
func TestBackfillInstants(t *testing.T) {
	const window = int64(time.Hour / time.Microsecond)
	now := someInstant - someInstant%window + window/2 // half past
	tests := map[string]struct {
		limit Limit
		ago   int64 // in minutes
		n, f  int64 // of 10 units, on top of nothing
	}{
		"a bucket, now":                  {TokenBucket(60, time.Hour), 0, 10, 0},
		"a bucket, in part":              {TokenBucket(60, time.Hour), 4, 6, 0},
		"a bucket, drained":              {TokenBucket(60, time.Hour), 10, 0, 0},
		"a bucket, later":                {TokenBucket(60, time.Hour), -1, 10, 0},
		"a window, now":                  {FixedWindow(60, time.Hour), 0, 10, 0},
		"a window, at its beginning":     {FixedWindow(60, time.Hour), 30, 10, 0},
		"a window, before it":            {FixedWindow(60, time.Hour), 31, 0, 0},
		"a counter, now":                 {SlidingWindowCounter(60, time.Hour), 30, 10, 0},
		"a counter, the window before":   {SlidingWindowCounter(60, time.Hour), 31, 0, 10},
		"a counter, two windows before":  {SlidingWindowCounter(60, time.Hour), 91, 0, 0},
		"a log, now":                     {SlidingWindowLog(60, time.Hour), 0, 10, 0},
		"a log, a moment before it ends": {SlidingWindowLog(60, time.Hour), 59, 10, 0},
		"a log, a window ago":            {SlidingWindowLog(60, time.Hour), 60, 0, 0},
	}
	for name, tt := range tests {
		step, terms := table[tt.limit.algorithm].step, tt.limit.terms
		s, _ := step.at(state{}, now, &terms)
		s = step.backfill(s, now, 10, now-tt.ago*time.Minute.Microseconds(), &terms)
		if s.n != tt.n || s.f != tt.f {
			t.Errorf("%s: got n %d, f %d, want %d, %d", name, s.n, s.f, tt.n, tt.f)
		}
	}
}
