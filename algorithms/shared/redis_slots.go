// How a call travels: its items get stored keys, and the items of one slot are
// one group, which one script decides.
//
// In Redis Cluster, checks of one principal share a slot. Checks in several
// slots are taken slot by slot, in the order of their first items, and given
// back if a later slot denies or fails. Until then, it can deny other callers a
// unit that comes back, and afterwards they can take the units that came back. A
// process that dies in
// between leaves the units charged until they drain. Example: a call takes a
// unit of usr=42 and a unit of const=all, whose slots differ. The first script
// charges usr=42, and the second denies const=all. Then a Return gives the unit
// of usr=42 back.
//
// Of a pair of takes in two slots, the first take's slot comes first, and the second slot receives its verdict. If the
// second take denies the call, the first is given back like any other.
//
// After its deadline, a call may still be on its way: see fallback_overdue.go.

package shared

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	noPart = -1

	// returnWithin bounds giving back units of other slots: the call's own
	// context may have ended.
	returnWithin = time.Second
)

// longKey is how many bytes of a stored key weigh as much as a take.
const longKey = 256

// split gives the items of a call their stored keys, and puts every item into the group of
// its slot. Limits without units, and receipts of other limiters, need no group.
func (r *redisLayer) split(c *call) {
	if c.redis != r {
		c.groups = nil // in tests, channels must not leave the synctest bubble of another limiter
	}
	c.redis = r
	for i := range c.items {
		it := &c.items[i]
		it.Denies = false
		if it.Limit.Row.Refill == step.Never || it.Dropped {
			it.part = noPart
			it.Answer.Allowed = it.Op.Settles()
			if it.Op == step.TakeElse {
				c.items[it.Before.Index].Denies = true
			}
			continue
		}
		if it.Stored == "" {
			it.Stored = r.stored(&it.Key)
			if it.slot = 0; r.cluster != nil {
				it.slot = slotOf(hashTag(it.Stored))
			}
		}
		it.part = r.partOf(c, it)
		g := &c.groups[it.part]
		g.Items = append(g.Items, &it.Item)
		g.Closed = g.Closed || it.fail == algorithms.FailClosed
		g.Weight += it.Limit.Row.Weight(&it.Limit, it.Op, it.Cost) + len(it.Stored)/longKey
	}
}

// partOf returns the place of the group of an item's slot. If there is none, it
// makes one. The second take of a pair must not be in a group before the first.
func (r *redisLayer) partOf(c *call, it *item) int {
	n, from := len(c.groups), 0
	if it.Op.Depends() {
		from = max(0, c.items[it.Before.Index].part)
	}
	for part := from; part < n; part++ {
		if c.groups[part].Slot == it.slot {
			return part
		}
	}
	c.groups = slices.Grow(c.groups, 1)[:n+1] // with the buffers of an earlier group
	g := &c.groups[n]
	g.Slot, g.Lane, g.Ours = it.slot, r.lane(it.Stored), c.ours
	return n
}

// run decides the call group by group. Each batch keeps the deadline. Several
// groups, one after the other, would each take that long, so the groups after the
// first have the rest of it to be sent.
func (r *redisLayer) run(ctx context.Context, c *call) error {
	if len(c.groups) == 0 {
		return nil
	}
	began := time.Now()
	for i := range c.groups { // a call needs all its masters
		if g := &c.groups[i]; g.Lane.Circuit.Stops(g.Ours) {
			return trouble.ErrOpen
		}
	}
	if err := r.runGroup(ctx, c, 0); err != nil || len(c.groups) == 1 {
		return err
	}
	within, cancel := context.WithDeadline(ctx, began.Add(r.transport.Deadline))
	defer cancel()
	for part := 1; part < len(c.groups); part++ {
		err := trouble.ErrUnsent
		if within.Err() == nil {
			err = r.runGroup(within, c, part)
		}
		if err != nil {
			// Only finished groups are given back. The group that failed may
			// still be on its way.
			r.giveBack(ctx, c, func(it *item) bool { return it.part < part })
			noteSettled(c, part)
			return err
		}
	}
	if !c.items[0].Op.Settles() {
		denied := deniedBefore(c, len(c.groups))
		r.giveBack(ctx, c, func(it *item) bool {
			if it.Op == step.TrialInstead && !it.Before.Passes() {
				return denied > 1
			}
			return denied > 0
		})
	}
	return nil
}

// noteSettled decides the settlements of the groups before part, which are finished.
func noteSettled(c *call, part int) {
	for i := range c.items {
		it := &c.items[i]
		if it.Op.Settles() && it.part < part && !it.Dropped {
			it.decide(it.Now, algorithms.Shared)
			it.Dropped = true
		}
	}
}

// runGroup decides a group, after all groups before it. If Redis may execute the
// group after an error, runGroup marks its items.
func (r *redisLayer) runGroup(ctx context.Context, c *call, part int) error {
	g := &c.groups[part]
	if len(c.items) > 1 {
		g.Denied = deniedBefore(c, part)
	}
	for i := range c.items {
		if it := &c.items[i]; it.part == part && it.Before != nil {
			it.Place = placeBefore(c, g, it)
		}
	}
	err := g.Lane.Submit(ctx, g)
	overdue, executed := err == trouble.ErrTimeout, trouble.Of(err).Executed
	for i := range c.items {
		if it := &c.items[i]; executed && it.part == part {
			it.unknown = true
			it.Key = it.Key.Clone() // the caller's bytes may change when Allow has returned
			if !overdue {
				r.ledger.doubt(it, err) // no reply will come
			}
		}
	}
	if overdue {
		c.part, c.settled = part, g.Settled()
	}
	return err
}

// placeBefore finds the take on which an item depends.
func placeBefore(c *call, g *batch.Group, it *item) uint16 {
	take := &c.items[it.Before.Index]
	if take.Op == step.TakeElse && take.part == noPart {
		take = &c.items[take.Before.Index]
	}
	if place := slices.Index(g.Items, &take.Item); place >= 0 {
		return uint16(place + 1)
	}
	if decidedIn(c, take) < it.part && !take.Passes() {
		return batch.DeniedElsewhere
	}
	return 0 // allowed, or not yet decided: then run gives back the trial if necessary
}

// deniedBefore returns how many denied takes are in no group, or in a group
// before part.
func deniedBefore(c *call, part int) (n int) {
	for i := range c.items {
		it := &c.items[i]
		if it.Op.Decides() && decidedIn(c, it) < part && !it.Passes() {
			n++
		}
	}
	return n
}

// decidedIn returns the group after which it is known whether a take passes. If Nobody stands behind another limit, that
// is the group of the first take.
func decidedIn(c *call, it *item) int {
	if it.Op == step.TakeElse {
		return max(it.part, c.items[it.Before.Index].part)
	}
	return it.part
}

// giveBack returns the charged items that wrongly selects, the last one first,
// because a leaky bucket can undo only its newest take.
func (r *redisLayer) giveBack(ctx context.Context, c *call, wrongly func(*item) bool) {
	var charged []*item
	for i := range slices.Backward(c.items) {
		if it := &c.items[i]; wrongly(it) && it.Answer.Charged {
			charged = append(charged, it)
		}
	}
	if charged == nil {
		return
	}
	back := getCall(len(charged))
	back.ours = true
	for i, it := range charged {
		undo := &back.items[i]
		*undo = item{Item: batch.Item{Stored: it.Stored}, slot: it.slot}
		undo.Key, undo.Limit, undo.Op, undo.Cost = it.Key, it.Limit, step.Return, it.Cost
		it.Taken(&undo.Receipt, uint8(algorithms.Shared))
		_ = back.add(undo)
		it.Answer.Charged = false
	}
	r.split(back)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for part := range back.groups {
		err := r.runGroup(ctx, back, part)
		if err != nil {
			back.failed = true
		}
		for i, it := range charged {
			switch undo := &back.items[i]; {
			case undo.part != part:
			case err != nil: // it is still charged; if its Return is kept, not for long
				if !r.ledger.keep(undo, err) {
					it.unknown = true
				}
			default: // the state that undoing it has left, and its own verdict
				undo.Answer.Allowed, undo.Answer.Missing = it.Answer.Allowed, it.Answer.Missing
				it.Now, it.Answer = undo.Now, undo.Answer
			}
		}
	}
	back.free()
}
