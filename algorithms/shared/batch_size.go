// How much one batch holds.

package shared

import "slices"

// A batch holds Redis for as long as its checks take, and all other clients
// wait. So a batch is bounded by weight, in takes that are alone on their
// keys. A heavier group travels alone.
const maxBatchWeight = 64

// gather fills the batch with the groups at the head of the queue:
// queued -> held. It requires mu.
func (b *batch) gather(l *lane) {
	b.lane = l
	weight := 0
	for _, g := range l.queue {
		if weight += g.weight; len(b.groups) > 0 && weight > l.flight.weight() {
			break
		}
		g.batch = b
		b.groups = append(b.groups, g)
	}
	l.queue = slices.Delete(l.queue, 0, len(b.groups))
	b.together = l.inFlight
}

// weight returns the most weight of a batch. Few batches in flight are on one
// machine, where a large batch costs Redis less per check. Many are on a network,
// where a large batch would let callers wait for each other.
func (f *flight) weight() int {
	return max(maxBatchWeight*3/4, 2*maxBatchWeight/max(f.level, fewInFlight))
}
