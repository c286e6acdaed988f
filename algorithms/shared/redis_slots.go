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
// After its deadline, a call may still be on its way: see shared_overdue.go.

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

// A redisItem is the part of an item that only the Redis layer uses.
type redisItem struct {
	slot uint16
	part int // the group that it is in, noPart if in none
}

const (
	noPart = -1

	// returnWithin bounds giving back units of other slots: the call's own
	// context may have ended.
	returnWithin = time.Second
)

// longKey is how many bytes of a stored key weigh as much as a take.
const longKey = 256

// A group is the items of one slot, and the lane of their master.
type group struct {
	batch.Group
	lane *lane
}

// A redisCall is a call split by slots: the part of a call that only the Redis
// layer uses.
type redisCall struct {
	redis  *redisLayer
	call   *call // nil: units that go back
	items  []item
	groups []group

	stored []byte // a buffer for keys
}

// split gives the items their stored keys, and puts every item into the group of
// its slot. Limits without units, and
// receipts of other limiters, need no group.
func (rc *redisCall) split() {
	for i := range rc.items {
		it := &rc.items[i]
		it.Denies = false
		if it.Limit.Row.Refill == step.Never || it.Dropped {
			it.part = noPart
			it.Answer.Allowed = it.Op.Settles()
			if it.Op == step.TakeElse {
				rc.items[it.Before.Index].Denies = true
			}
			continue
		}
		if it.Stored == "" {
			rc.stored = appendStored(append(rc.stored[:0], rc.redis.prefix...), &it.Key)
			it.Stored = string(rc.stored)
			if it.slot = 0; rc.redis.cluster != nil {
				it.slot = slotOf(hashTag(it.Stored))
			}
		}
		it.part = rc.partOf(it)
		g := &rc.groups[it.part]
		g.Items = append(g.Items, &it.Item)
		g.Closed = g.Closed || it.fail == algorithms.FailClosed
		g.Weight += it.Limit.Row.Weight(&it.Limit, it.Op, it.Cost) + len(it.Stored)/longKey
	}
}

// partOf returns the place of the group of an item's slot. If there is none, it
// makes one. The second take of a pair must not be in a group before the first.
func (rc *redisCall) partOf(it *item) int {
	n, from := len(rc.groups), 0
	if it.Op.Depends() {
		from = max(0, rc.items[it.Before.Index].part)
	}
	for part := from; part < n; part++ {
		if rc.groups[part].Slot == it.slot {
			return part
		}
	}
	rc.groups = slices.Grow(rc.groups, 1)[:n+1] // with the buffers of an earlier group
	g := &rc.groups[n]
	g.Slot, g.lane, g.Ours = it.slot, rc.redis.lane(it.Stored), true
	if rc.call != nil {
		g.Owner, g.Ours = rc.call, rc.call.ours
	}
	return n
}

// run decides the call group by group. Each batch keeps the deadline. Several
// groups, one after the other, would each take that long, so the groups after the
// first have the rest of it to be sent.
func (rc *redisCall) run(ctx context.Context) error {
	if len(rc.groups) == 0 {
		return nil
	}
	began := time.Now()
	for i := range rc.groups { // a call needs all its masters
		if g := &rc.groups[i]; g.lane.circuit.Stops(g.Ours) {
			return trouble.ErrOpen
		}
	}
	if err := rc.runGroup(ctx, 0); err != nil || len(rc.groups) == 1 {
		return err
	}
	within, cancel := context.WithDeadline(ctx, began.Add(rc.redis.transport.Deadline))
	defer cancel()
	for part := 1; part < len(rc.groups); part++ {
		err := trouble.ErrUnsent
		if within.Err() == nil {
			err = rc.runGroup(within, part)
		}
		if err != nil {
			// Only finished groups are given back. The group that failed may
			// still be on its way.
			rc.giveBack(ctx, func(it *item) bool { return it.part < part })
			rc.noteSettled(part)
			return err
		}
	}
	if !rc.items[0].Op.Settles() {
		denied := rc.deniedBefore(len(rc.groups))
		rc.giveBack(ctx, func(it *item) bool {
			if it.Op == step.TrialInstead && !it.Before.Passes() {
				return denied > 1
			}
			return denied > 0
		})
	}
	return nil
}

// noteSettled marks the settlements of the groups before part, which are finished.
func (rc *redisCall) noteSettled(part int) {
	for i := range rc.items {
		it := &rc.items[i]
		if it.Op.Settles() && it.part < part {
			it.fate = fateSettled
		}
	}
}

// runGroup decides a group, after all groups before it. If Redis may execute the
// group after an error, runGroup marks its items.
func (rc *redisCall) runGroup(ctx context.Context, part int) error {
	g := &rc.groups[part]
	if len(rc.items) > 1 {
		g.Denied = rc.deniedBefore(part)
	}
	for i := range rc.items {
		if it := &rc.items[i]; it.part == part && it.Before != nil {
			it.Place = rc.placeBefore(g, it)
		}
	}
	overdue, err := g.lane.Submit(ctx, &g.Group)
	if err != nil && trouble.Of(err).Executed {
		rc.unknown(part)
	}
	if overdue && rc.call != nil {
		rc.call.goesOn(part)
	}
	return err
}

// unknown marks the items of a group that Redis may have executed.
func (rc *redisCall) unknown(part int) {
	for i := range rc.items {
		if it := &rc.items[i]; it.part == part {
			it.fate = fateUnknown
			it.Key = it.Key.Clone() // the caller's bytes may change when Allow has returned
		}
	}
}

// placeBefore finds the take on which an item depends.
func (rc *redisCall) placeBefore(g *group, it *item) uint16 {
	take := &rc.items[it.Before.Index]
	if take.Op == step.TakeElse && take.part == noPart {
		take = &rc.items[take.Before.Index]
	}
	if place := slices.Index(g.Items, &take.Item); place >= 0 {
		return uint16(place + 1)
	}
	if rc.decidedIn(take) < it.part && !take.Passes() {
		return batch.DeniedElsewhere
	}
	return 0 // allowed, or not yet decided: then run gives back the trial if necessary
}

// deniedBefore returns how many denied takes are in no group, or in a group
// before part.
func (rc *redisCall) deniedBefore(part int) (n int) {
	for i := range rc.items {
		it := &rc.items[i]
		if it.Op.Decides() && rc.decidedIn(it) < part && !it.Passes() {
			n++
		}
	}
	return n
}

// decidedIn returns the group after which it is known whether a take passes. If Nobody stands behind another limit, that
// is the group of the first take.
func (rc *redisCall) decidedIn(it *item) int {
	if it.Op == step.TakeElse {
		return max(it.part, rc.items[it.Before.Index].part)
	}
	return it.part
}

// giveBack returns the charged items that wrongly selects, the last one first,
// because a leaky bucket can undo only its newest take.
func (rc *redisCall) giveBack(ctx context.Context, wrongly func(*item) bool) {
	var charged []*item
	for i := range slices.Backward(rc.items) {
		if it := &rc.items[i]; wrongly(it) && it.Answer.Charged {
			charged = append(charged, it)
		}
	}
	if charged == nil {
		return
	}
	back := rc.redis.returnsOf(charged)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()
	for part := range back.groups {
		err := back.runGroup(ctx, part)
		for i, it := range charged {
			switch undo := &back.items[i]; {
			case undo.part != part:
			case err != nil: // it is still charged; if its Return is kept, not for long
				if !rc.redis.returns.failed(undo, err) {
					it.fate = fateUnknown
				}
			default: // the state that undoing it has left, and its own verdict
				undo.Answer.Allowed, undo.Answer.Missing = it.Answer.Allowed, it.Answer.Missing
				it.Now, it.Answer = undo.Now, undo.Answer
			}
		}
	}
}

// returnsOf returns a call that returns what items have charged.
func (r *redisLayer) returnsOf(charged []*item) *redisCall {
	back := &redisCall{redis: r, items: make([]item, len(charged))}
	for i, it := range charged {
		undo := &back.items[i]
		undo.Key, undo.Limit, undo.Op, undo.Cost = it.Key, it.Limit, step.Return, it.Cost
		it.Taken(&undo.Receipt, uint8(algorithms.Shared))
		undo.Stored, undo.slot = it.Stored, it.slot
		it.Answer.Charged = false
	}
	back.split()
	return back
}

// giveBackUnits returns what items have charged, and does not wait for it. Their
// call was refused before Redis executed it.
func (r *redisLayer) giveBackUnits(charged []*item) {
	back := r.returnsOf(charged)
	for part := range back.groups {
		g := &back.groups[part]
		g.lane.Post(&g.Group, func(err error) {
			for i := range back.items {
				if undo := &back.items[i]; err != nil && undo.part == part {
					r.returns.failed(undo, err)
				}
			}
		})
	}
}
