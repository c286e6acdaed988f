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

// NewDenyCacheForTest returns a deny cache over any limiter, and its hits.
func NewDenyCacheForTest(next Limiter, maxKeys int) (Limiter, func() (hits uint64, keys int)) {
	c := newDenyCache(next, maxKeys)
	return c, func() (uint64, int) { return c.hits.Load(), c.len() }
}

// NewStackForTest returns a stack over any limiter.
func NewStackForTest(next Limiter, o *Options) *Stack {
	s := &Stack{limiter: next, redis: new(Redis)}
	var leases LeaseOptions
	if o.Lease != nil {
		leases = o.Lease.withDefaults()
	}
	s.cover(o, leases)
	return s
}
