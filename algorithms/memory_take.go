package algorithms

// take decides a call of one Take from a token bucket, the default algorithm,
// just as call would, in less than half the time. No other check can deny it or
// change the state between verdict and charge, so it needs no item; and a step
// that is known is called directly rather than through its interface.
func (m *Memory) take(c *Check, now int64) {
	l, cost := &c.Limit.terms, c.units()
	s, fullAt, fits, room := m.takeFrom(c, cost, now)
	if !room {
		c.Decision = Decision{RetryAfter: refusedFor}
		return
	}
	var step tokenBucket
	a := answerOf(s)
	d := &c.Decision
	*d = Decision{Allowed: fits, Source: Local, Remaining: max(0, l.burst-s.n)}
	d.ResetAfter = until(fullAt, now)
	d.UnitAfter = until(step.unitAt(a, l), now)
	switch {
	case !fits:
		d.RetryAfter = Never
		if cost <= l.most {
			d.RetryAfter = until(step.retryAt(a, min(cost, l.burst), l), now)
		}
	case cost > 0:
		d.Receipt = Receipt{
			units: cost, at: now, t: s.t, n: s.n, f: s.f,
			source: Local, algorithm: algorithmTokenBucket,
		}
	}
}

// takeFrom returns the state that a take leaves and when that is full again,
// whether it fits, and whether there is room for its key: if not, it counts as
// denied and the figures mean nothing.
func (m *Memory) takeFrom(c *Check, cost, now int64) (s state, fullAt int64, fits, room bool) {
	var step tokenBucket
	l, n := &c.Limit.terms, nameOf(c)
	hash := n.hash(m.seed)
	sh := m.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.records.find(chainHash(hash), n)
	if r != nil {
		s = r.state()
	}
	s, repaired := step.at(s, now, l)
	fits = l.fit(s.n, cost)
	charged := fits && cost > 0
	if charged {
		if r == nil {
			if r = m.reserve(hash, n, now, nil); r == nil {
				return s, 0, false, false
			}
		}
		s.n += cost
	}
	fullAt = step.resetAt(answerOf(s), l)
	if charged || repaired {
		r.put(s, fullAt)
	}
	if !fits && r != nil {
		r.deniedAt = now
	}
	return s, fullAt, fits, true
}
