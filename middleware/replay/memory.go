// The memory of limits in Redis, as measured with Redis 7, and the memory of the replay.

package replay

// Bytes of a key in Redis beside the key itself, by how its state is stored.
const (
	stringBytes     = 120
	logBytes        = 245
	logEntry        = 12
	concurrentBytes = 185
	concurrentEntry = 54

	affixes = len("penstock:{}::tb") // what the limiter puts around a key and a policy
)

// bytesPerKey estimates what Redis needs for a key of the series.
func (s *series) bytesPerKey() int64 {
	name := s.text/int64(max(1, s.keys)) + int64(len(s.policy)+affixes)
	units := min(s.limit.Requests(), s.tally.units/max(1, s.visits)+1)
	switch {
	case s.limit.Algorithm().Concurrent():
		return name + concurrentBytes + units*concurrentEntry
	case s.limit.Algorithm().String() == "sliding-window-log":
		return name + logBytes + units*logEntry
	default:
		return name + stringBytes
	}
}

// garbagePercent returns the garbage that may stand beside the keys before it is
// collected: a quarter of their memory, or 64 MB if that is more. With Go's own setting,
// the garbage of a few keys is collected all the time, and the garbage of a million keys takes
// as much memory as they do.
func garbagePercent(keys keyID) int {
	const (
		perKey = 300 // bytes
		other  = maxHeld + 4<<20
		least  = int64(64 << 20)
	)
	return int(max(25, 100*least/(other+perKey*int64(min(keys, 1<<20)))))
}
