// The memory of a replay.

package replay

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
