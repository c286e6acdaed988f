package comeback

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Jitter returns an addition to a client's wait, from 0 to less than spread, so
// that clients do not return together at the end of a window.
//
// The result depends on the arguments alone, so all instances and tries agree.
// client is the client's key. slot changes with the window, e.g. its end in
// Unix seconds.
func Jitter(spread time.Duration, policy, client string, slot int64) time.Duration {
	if spread <= 0 {
		return 0
	}
	// Other versions must compute the same hash, so it never changes. The
	// length distinguishes ("a", "bc") from ("ab", "c").
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

// jittered returns the wait with jitter: up to a tenth of the window, from 1 to 30 s. All instances and all tries get
// the same jitter.
func (d *Denial) jittered(now time.Time) time.Duration {
	limit := d.Limit
	spread := min(max(limit.Window()/10, time.Second), 30*time.Second)
	slot := now.UnixNano() / int64(spread)
	if limit.Algorithm().Aligned() {
		// The end of the window, rounded because clocks differ a little.
		w := grid(limit).Microseconds()
		slot = (now.UnixMicro() + d.Wait.Microseconds() + w/2) / w
	}
	return d.Wait + Jitter(spread, d.Policy, d.Client, slot)
}

// grid returns a duration that divides all window ends of an aligned limit,
// counted from the epoch. Calendar periods end at whole minutes, because
// today's time zones differ from UTC by whole minutes.
func grid(l algorithms.Limit) time.Duration {
	if l.Algorithm().Calendar() {
		return time.Minute
	}
	return l.Window()
}
