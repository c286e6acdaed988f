// The leaky bucket: the token bucket's state and step, read as a queue. Each
// unit in use is a place in the queue. A request is served when everything
// before it has drained: after N - cost units, counted from the state after its
// charge.
//
// Example: 60 per minute, burst 3. Four requests come at 0 s. The first is
// served at once, the second at 1 s, the third at 2 s. The fourth finds the
// queue full, with a RetryAfter of 1 s. There it is admitted, and served at 3
// s.

package step

type leakyBucket struct{ tokenBucket }

// undo credits only the newest take: the state that it left is still stored. The requests behind a place in the middle
// have been promised their delays. A newcomer in that place would be served at the same instant as the last request in
// the queue.
func (b leakyBucket) undo(stored, s State, units int64, r *Receipt, _ *Limit) State {
	if stored.T == r.T && stored.N == r.N && stored.F == r.F {
		return b.grant(stored, units)
	}
	return s
}

func (leakyBucket) delayUntil(s State, units int64, l *Limit) int64 {
	if units == 0 || s.N == units {
		return 0
	}
	return after(s.T, s.F, s.N-units, l)
}
