package comeback

import (
	"context"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

// countedLimiter says how many instances share it, and counts how often it is asked.
type countedLimiter struct{ instances, asked int }

func (*countedLimiter) Allow(context.Context, []algorithms.Check) error { return nil }
func (l *countedLimiter) Stats() (s algorithms.Stats) {
	l.asked++
	s.Fallback.Instances = l.instances
	return s
}

type wrapper struct{ algorithms.Limiter }

func (w wrapper) Unwrap() algorithms.Limiter { return w.Limiter }

// TestInstancesAreReadOncePerSecond: also those of a limiter that is wrapped.
func TestInstancesAreReadOncePerSecond(t *testing.T) {
	t.Parallel()
	n, l := new(instances), &countedLimiter{instances: 4}
	for _, at := range []struct{ now, want int64 }{{0, 4}, {1, 4}, {999_999, 4}, {1_000_000, 6}, {1_500_000, 6}} {
		if got := n.of(wrapper{l}, at.now); got != at.want {
			t.Errorf("at %d: got %d instances, want %d", at.now, got, at.want)
		}
		l.instances = 6
	}
	if l.asked != 2 {
		t.Errorf("the limiter was asked %d times, want 2", l.asked)
	}
	if got := new(instances).of(algorithms.NewMemory(nil), 0); got != 1 {
		t.Errorf("got %d instances of a Memory, want 1", got)
	}
}
