package algorithms

// QueuedForTest returns how many groups wait for a place in flight.
func (r *Redis) QueuedForTest() (n int) {
	for i := range r.lanes {
		r.lanes[i].mu.Lock()
		n += len(r.lanes[i].queue)
		r.lanes[i].mu.Unlock()
	}
	return n
}

// UnderWayForTest returns how many batches have not been answered, also those that are given up.
func (r *Redis) UnderWayForTest() (n int) {
	for i := range r.lanes {
		l := &r.lanes[i]
		l.mu.Lock()
		n += l.inFlight + l.stuck
		l.mu.Unlock()
	}
	return n
}

func (s *Stack) UnderWayForTest() int { return s.redis.UnderWayForTest() }

// NewDenyCacheForTest returns a deny cache over any limiter, and its hits.
func NewDenyCacheForTest(next Limiter, maxKeys int) (Limiter, func() (hits uint64, keys int)) {
	c := newDenyCache(next, maxKeys)
	return c, func() (uint64, int) { return c.hits.Load(), c.len() }
}

// NewStackForTest returns a stack over any limiter. It must be closed.
func NewStackForTest(next Limiter, o *Options) *Stack {
	memory := Must(NewMemory(nil))
	s := &Stack{limiter: next, redis: new(Redis), memory: memory, fallback: Must(NewFallback(struct{ Limiter }{next}, memory, nil))}
	s.cover(o)
	return s
}

// BackfillForTest makes a check that charges, as far as it fits, what was
// admitted elsewhere at an instant.
func BackfillForTest(c Check, at int64) Check {
	c.Op, c.Decision = backfill, Decision{Receipt: Receipt{at: at}}
	return c
}

// LaneForTest returns the lane of a key's calls in a Cluster.
func LaneForTest(key string) int { return int(slotOf(key)) / slotsPerLane }

// BeatForTest makes the Stack known to other instances, and learns of them.
func (s *Stack) BeatForTest() { s.fallback.beat() }
