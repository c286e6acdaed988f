package wrapped

import (
	"testing"

	"github.com/penstock-go/penstock/algorithms"
)

// An outer limiter wraps another, and has no methods of its own.
type outer struct{ algorithms.Limiter }

func (o outer) Unwrap() algorithms.Limiter { return o.Limiter }

// An opaque limiter wraps another, and does not show it. It cannot be compared.
type opaque struct {
	algorithms.Limiter
	_ []int
}

// TestFind looks below limiters that have Unwrap, and no further.
func TestFind(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	for name, tt := range map[string]struct {
		limiter algorithms.Limiter
		found   bool
	}{
		"itself":     {memory, true},
		"two levels": {outer{outer{memory}}, true},
		"hidden":     {outer{opaque{Limiter: memory}}, false},
		"wraps nil":  {outer{}, false},
		"nil":        {nil, false},
	} {
		got, found := Find[*algorithms.Memory](tt.limiter)
		if found != tt.found || found && got != memory {
			t.Errorf("%s: got %v and %v, want %v", name, got, found, tt.found)
		}
		if _, counts := Find[Counter](tt.limiter); counts != tt.found {
			t.Errorf("%s: found a Counter: %v, want %v", name, counts, tt.found)
		}
	}
}

// TestSame: values that cannot be compared are not the same, and comparing them does not panic.
func TestSame(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	a := outer{opaque{Limiter: memory}}
	switch {
	case !Same(memory, memory), !Same(outer{memory}, outer{memory}):
		t.Error("one limiter is not the same as itself")
	case Same(memory, algorithms.NewMemory(nil)):
		t.Error("two limiters are the same")
	case Same(a, a), Same(a, memory), Same(memory, a):
		t.Error("limiters that cannot be compared are the same")
	}
}
