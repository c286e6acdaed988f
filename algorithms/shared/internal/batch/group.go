// A group, and how it ends.
//
//	        Submit           gather              answer
//	(owner) ────────> queued ──────> in flight ───────────> ended
//	                    │                │  expire, unsent      ^
//	                    │                ├──────────────────────┤
//	                    │                │  expire, sent
//	                    │ leave, shed    └───────> overdue ── the client returns ──> settled
//	                    └───────────────────────────────────────^ ended
//
// Its owner learns of at most two events.
//
//	ended    Each group ends once. It has its answers, or there is an error: why
//	         it has none. Submit returns it.
//	settled  A group whose batch was sent and is late ends overdue: Redis may have
//	         executed it, or may yet do so. Then Settled receives how it went, once the
//	         client has given up or received the reply.
//
//	ends                the error           owner of the items afterwards
//	in time             nil, or the reply's the owner of the group
//	by leave or shed    ErrUnsent, or       the owner
//	                    ErrOverloaded
//	unsent              ErrUnsent           the owner; the batch may still read them
//	overdue             ErrTimeout itself   both: until Settled the batch may write Answer
//	                                        and Now, and read the others, except Key
//
// So after an error the items must go to no other group, and after an overdue end
// nobody may write what the batch reads, such as the bytes of a key.
//
// A caller leaves a queued group only. A group in flight ends within the deadline.
// To leave it sooner, a caller would have to let a batch go on with items that it no
// longer watches.

package batch

import (
	"time"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// An Item is one check of a group, and its answer.
type Item struct {
	step.Item
	Stored string // the key in Redis
	Now    int64  // µs: the clock of the script that decided it

	// Place is the place in its group of step.Item.Before, from 1. It is 0 or
	// DeniedElsewhere if that take is not in the group.
	Place uint16

	// Denies says that Nobody stands behind this take, so it alone decides for its pair.
	Denies bool
}

// DeniedElsewhere is the Place of an item whose take was denied in another group.
const DeniedElsewhere = 1<<16 - 1

// A Group is the part of a call that one script decides. Its owner fills in the
// exported fields.
type Group struct {
	Items  []*Item
	Lane   *Lane  // of its master; only the owner reads it
	Slot   uint16 // of a Cluster: a script has groups of one slot
	Weight int    // in takes that are alone on their keys
	Denied int    // takes outside of the group
	Ours   bool   // sent for the limiter itself: also while the circuit is open, and the circuit does not count it
	Closed bool   // it has a check that fails closed: a reply that comes after a refusal lets the units be returned

	queued time.Time
	next   *Group     // in the tally of its key
	err    error      // why the batch has no answer for it
	done   chan error // receives both events, and has room for them
}

// Settled returns the channel of the second event, for a group that has ended overdue. It receives nil if
// the group has its answers, and otherwise why it has none.
func (g *Group) Settled() <-chan error { return g.done }

// Reset empties a group that has ended in time, and keeps its buffers.
func (g *Group) Reset() { *g = Group{Items: g.Items[:0], done: g.done} }
