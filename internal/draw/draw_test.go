package draw

import (
	"bytes"
	"math"
	"testing"
)

// TestInt64: numbers stay within their ends, and both ends are drawn.
func TestInt64(t *testing.T) {
	for _, ends := range [][2]int64{{0, 0}, {-3, 4}, {1, 1_000_000_000}, {math.MinInt64, math.MaxInt64}, {math.MaxInt64 - 1, math.MaxInt64}} {
		seen := make(map[int64]bool)
		Check(t, func(t *testing.T, v *Values) {
			x := v.Int64(ends[0], ends[1])
			if x < ends[0] || x > ends[1] {
				t.Errorf("got %d, want it from %d to %d", x, ends[0], ends[1])
			}
			seen[x] = true
		})
		if !seen[ends[0]] || !seen[ends[1]] {
			t.Errorf("got neither or one of %d", ends)
		}
	}
}

// TestFrom: a fuzzer reaches all numbers, and data that ends leaves zeros.
func TestFrom(t *testing.T) {
	v := From(bytes.Repeat([]byte{0xff}, 12))
	for _, want := range []uint64{math.MaxUint64, math.MaxUint32, 0, 0} {
		if got := v.Uint64(); got != want {
			t.Errorf("got %#x, want %#x", got, want)
		}
	}
	if got := From(nil).Int64(5, 9); got != 5 {
		t.Errorf("got %d without data, want the least", got)
	}
}
