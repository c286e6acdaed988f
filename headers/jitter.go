package headers

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Jitter returns a time to add to a client's wait, at least 0 and less than
// spread. It keeps clients that wait for the same instant, such as the end of a
// window, from coming back together (section 8.5 of the draft). A tenth of the
// window, at least 1 s and at most 30 s, is a good spread. A spread of 0 or less
// returns 0. Only add the result to a wait: an earlier return would be denied.
//
// The result depends on the arguments alone. A client that polls therefore sees
// one instant come nearer, and all instances of a service agree, whatever their
// versions. Give the policy's name, the client's key, and a slot that changes
// with the instant, e.g. the end of the window in Unix seconds.
//
// Jitter is safe for concurrent use.
func Jitter(spread time.Duration, policy, client string, slot int64) time.Duration {
	if spread <= 0 {
		return 0
	}
	// Other versions must compute the same hash, so it never changes. The length
	// keeps ("a", "bc") and ("ab", "c") apart.
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
