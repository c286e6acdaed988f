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
