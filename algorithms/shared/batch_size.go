// How much one batch holds.

package shared

import "slices"

// A batch holds Redis for as long as its checks take, and all other clients
// wait. So a batch is bounded by weight, in takes that are alone on their
// keys. A heavier group travels alone.
//
// A larger batch would cost Redis little less per check, and on a network it would
// let callers wait for each other.
const maxBatchWeight = 48

// longKey is how many bytes of a stored key weigh as much as a take.
const longKey = 256

// gather fills the batch with the groups at the head of the queue:
// queued -> held. It requires mu.
func (b *batch) gather(l *lane) {
	b.lane = l
	weight := 0
	for _, g := range l.queue {
		if weight += g.weight; len(b.groups) > 0 && weight > maxBatchWeight {
			break
		}
		g.batch = b
		b.groups = append(b.groups, g)
	}
	l.queue = slices.Delete(l.queue, 0, len(b.groups))
	b.together = l.inFlight
	l.flying += len(b.groups)
}
