package algorithms

// leakyBucket is the token bucket's state and step, read as a queue: what is
// in use are the places taken, and a request is served when everything that
// was in the queue before it has drained.
type leakyBucket struct{ tokenBucket }

// undo credits only the newest take. Those behind a place in the middle have
// been promised their delays; a newcomer in it would be served at the same
// instant as the last one waiting.
func (b leakyBucket) undo(stored, s state, now, units int64, r Receipt, l *terms) state {
	if stored.left(r) {
		return b.restore(stored, now, units, l)
	}
	return s
}

func (leakyBucket) delayUntil(a answer, units int64, l *terms) int64 {
	if units == 0 || a.n == units {
		return 0
	}
	return after(a.t, a.f, a.n-units, l)
}
