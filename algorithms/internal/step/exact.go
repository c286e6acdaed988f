// Exact arithmetic on integers whose products may exceed 64 bits.

package step

import (
	"math"
	"math/bits"
)

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// MulDiv returns floor(a·b/c) and whether it is exact, for a, b >= 0 and c > 0.
// It saturates if the quotient does not fit.
func MulDiv(a, b, c int64) (quotient int64, exact bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, false
	}
	q, rem := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64)), rem == 0
}

// MulDivUp is MulDiv, rounded up.
func MulDivUp(a, b, c int64) int64 {
	q, exact := MulDiv(a, b, c)
	if !exact && q < math.MaxInt64 {
		q++
	}
	return q
}

// ceilDiv returns ceil(a/b) for a >= 0, b > 0.
func ceilDiv(a, b int64) int64 {
	if a == 0 { // often, and a division takes long
		return 0
	}
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
