// The memory of limits in Redis, as measured with Redis 7.

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
	units := min(s.limit.Requests(), s.tally.units/int64(max(1, s.keys))+1)
	switch {
	case s.limit.Algorithm().Concurrent():
		return name + concurrentBytes + units*concurrentEntry
	case s.limit.Algorithm().String() == "sliding-window-log":
		return name + logBytes + units*logEntry
	default:
		return name + stringBytes
	}
}
