// The leaky bucket: the token bucket's state and step, read as a queue. Units in
// use are places taken. A request is served when everything before it in the
// queue has drained.

package step

type leakyBucket struct{ tokenBucket }

// undo credits only the newest take. The requests behind a place in the middle
// have been promised their delays, and a newcomer in that place would be served
// at the same instant as the last one waiting.
func (b leakyBucket) undo(stored, s State, now, units int64, r *Receipt, l *Limit) State {
	if stored.left(r) {
		return b.restore(stored, now, units, l)
	}
	return s
}

func (leakyBucket) delayUntil(a Answer, units int64, l *Limit) int64 {
	if units == 0 || a.N == units {
		return 0
	}
	return after(a.T, a.F, a.N-units, l)
}
