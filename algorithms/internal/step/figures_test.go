package step_test

import (
	"math"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A Duration has 292 years. The last instant that it can express is still exact.
func TestUntil(t *testing.T) {
	const longest = math.MaxInt64 / 1_000
	for _, tt := range []struct {
		instant, now int64
		want         time.Duration
	}{
		{5, 5, 0}, {5, 6, 0}, {6, 5, time.Microsecond},
		{longest, 0, longest * time.Microsecond}, {longest + 1, 0, algorithms.Never}, {longest + 1, 1, longest * time.Microsecond},
	} {
		if got := step.Until(tt.instant, tt.now); got != tt.want {
			t.Errorf("Until(%d, %d): got %v, want %v", tt.instant, tt.now, got, tt.want)
		}
	}
}
