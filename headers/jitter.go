package headers

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Spread returns over how long the clients that wait for one instant, such as
// the end of a window, should be spread: a tenth of the window, at least 1 s
// and at most 30 s.
func Spread(window time.Duration) time.Duration {
	return min(max(window/10, time.Second), 30*time.Second)
}

// Jitter returns what to add to the wait of a client so that those who wait for
// the same instant do not all come back at it: at least 0 and less than the
// spread, 0 if that is not positive.
//
// It depends on its arguments alone. The same client therefore sees one instant
// count down instead of new ones at each try, and all instances of a service
// say the same, of all versions: the hash is the first 8 bytes of SHA-256.
// slot tells one instant from the next, e.g. the end of the window in Unix
// seconds. Jitter is only ever added: less than the wait would be a lie.
func Jitter(spread time.Duration, policy, client string, slot int64) time.Duration {
	if spread <= 0 {
		return 0
	}
	// The length keeps ("a", "bc") and ("ab", "c") apart.
	var array [256]byte
	text := binary.BigEndian.AppendUint64(array[:0], uint64(len(policy)))
	text = append(text, policy...)
	text = binary.BigEndian.AppendUint64(text, uint64(slot))
	text = append(text, client...)
	sum := sha256.Sum256(text)

	// The high half of the product is spread · hash / 2^64, exactly.
	part, _ := bits.Mul64(uint64(spread), binary.BigEndian.Uint64(sum[:]))
	return time.Duration(part)
}
