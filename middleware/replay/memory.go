// The memory of a replay.

package replay

// garbagePercent returns the garbage that may stand beside the keys before it is
// collected: a quarter of their memory, or 64 MB if that is more. With Go's own setting,
// the garbage of a few keys is collected all the time, and the garbage of a million keys takes
// as much memory as they do.
func garbagePercent(keys int) int {
	const least, other, perKey = 64 << 20, maxHeld + 4<<20, 300 // bytes
	return int(max(25, 100*least/(other+perKey*int64(min(keys, 1<<20)))))
}
