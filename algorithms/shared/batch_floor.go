// The least of recent values, such as round trips.

package shared

import "math"

// floorFor is half of how long a value counts, in µs.
const floorFor = 5_000_000

// A floor finds the least of the values of the last 5 to 10 s. Instants are
// monotonic, in µs. The zero floor has seen no value.
type floor struct {
	began        int64 // when least began
	least, older int64 // least since began, and least of the 5 s before; unknown if there was no value
	seen         bool
}

const unknown = math.MaxInt64

// at returns the least recent value, or unknown.
func (f *floor) at(now int64) int64 {
	f.turn(now)
	return min(f.least, f.older)
}

// observe notes a value.
func (f *floor) observe(now, value int64) {
	f.turn(now)
	f.least = min(f.least, value)
}

func (f *floor) turn(now int64) {
	switch age := now - f.began; {
	case !f.seen || age >= 2*floorFor:
		*f = floor{began: now, least: unknown, older: unknown, seen: true}
	case age >= floorFor:
		f.began, f.least, f.older = f.began+floorFor, unknown, f.least
	}
}
