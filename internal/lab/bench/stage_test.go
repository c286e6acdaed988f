package main

import "testing"

// TestDecidedByRedis: a thousandth of local decisions spoils a measurement.
func TestDecidedByRedis(t *testing.T) {
	for _, tt := range []struct {
		checks  int
		without uint64
		ok      bool
	}{{0, 0, true}, {1000, 1, true}, {1000, 2, false}, {0, 1, false}, {1_000_000, 1000, true}, {1_000_000, 1001, false}} {
		if err := decidedRight(tt.checks, tt.without); (err == nil) != tt.ok {
			t.Errorf("%d of %d: got %v", tt.without, tt.checks, err)
		}
	}
}
