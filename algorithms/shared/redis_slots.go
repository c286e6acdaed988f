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
// After its caller has given up, a call may still be on its way: see
// shared_pending.go.

package shared

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// A redisItem is the part of an item that only the Redis layer uses.
type redisItem struct {
	key  string
	slot uint16
	part int   // the group that it is in, noPart if in none
	now  int64 // µs: the clock of the script that decided it

	// before is the place in its group of step.Item.Before, from 1. It is 0 or
	// deniedElsewhere if that take is not in the group.
	before uint16

	// denies says that Nobody stands behind this take, so it alone decides for its pair.
	denies bool
}

const (
	noPart          = -1
	deniedElsewhere = math.MaxUint16

	// returnWithin bounds giving back units of other slots: the call's own
	// context may have ended.
	returnWithin = time.Second
)

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
		it.denies = false
		if it.Limit.Row.Refill == step.Never || it.Dropped {
			it.part = noPart
			it.Answer.Allowed = it.Op.Settles()
			if it.Op == step.TakeElse {
				rc.items[it.Before.Index].denies = true
			}
			continue
		}
		if it.key == "" {
			rc.stored = appendStored(append(rc.stored[:0], rc.redis.prefix...), &it.Key)
			it.key = string(rc.stored)
			if it.slot = 0; rc.redis.cluster != nil {
				it.slot = slotOf(hashTag(it.key))
			}
		}
		it.part = rc.partOf(it)
		g := &rc.groups[it.part]
		g.items = append(g.items, it)
		g.closed = g.closed || it.fail == algorithms.FailClosed
		g.weight += it.Limit.Row.Weight(&it.Limit, it.Op, it.Cost) + len(it.key)/longKey
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
		if rc.groups[part].slot == it.slot {
			return part
		}
	}
	rc.groups = slices.Grow(rc.groups, 1)[:n+1] // with the buffers of an earlier group
	g := &rc.groups[n]
	g.slot, g.lane, g.call, g.ours = it.slot, rc.redis.only, rc.call, rc.call == nil || rc.call.ours
	if g.lane == nil {
		g.lane = rc.redis.lane(it.key)
	}
	if g.done == nil {
		g.done = make(chan error, 1)
	}
	return n
}

// run decides the call group by group. Each batch keeps the deadline. Several
// groups, one after the other, would each keep it, so the groups after the
// first have the rest of it.
func (rc *redisCall) run(ctx context.Context) error {
	if len(rc.groups) == 0 {
		return nil
	}
	began := time.Now()
	for i := range rc.groups { // a call needs all its masters
		if g := &rc.groups[i]; g.lane.circuit.stops(g.ours) {
			return trouble.ErrOpen
		}
	}
	if err := rc.runGroup(ctx, 0); err != nil || len(rc.groups) == 1 {
		return err
	}
	within, cancel := context.WithDeadline(ctx, began.Add(rc.redis.deadline))
	defer cancel()
	for part := 1; part < len(rc.groups); part++ {
		if err := rc.runGroup(within, part); err != nil {
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
		it.settled = it.Op.Settles() && it.part < part
	}
}

// runGroup decides a group, after all groups before it. If Redis may execute the
// group after an error, runGroup marks its items.
func (rc *redisCall) runGroup(ctx context.Context, part int) error {
	g := &rc.groups[part]
	if len(rc.items) > 1 {
		g.denied = rc.deniedBefore(part)
	}
	for _, it := range g.items {
		if it.Before != nil {
			it.before = rc.placeBefore(g, it)
		}
	}
	err := g.lane.submit(ctx, g)
	if err != nil && trouble.Of(err).Executed {
		for _, it := range g.items {
			it.perhaps = true
		}
		if g.abandoned && g.call != nil {
			g.call.group = g
			for _, it := range g.items {
				it.Key = it.Key.Clone() // the caller's bytes may change when Allow has returned
			}
		}
	}
	return err
}

// placeBefore finds the take on which an item depends.
func (rc *redisCall) placeBefore(g *group, it *item) uint16 {
	take := &rc.items[it.Before.Index]
	if take.Op == step.TakeElse && take.part == noPart {
		take = &rc.items[take.Before.Index]
	}
	if place := slices.Index(g.items, take); place >= 0 {
		return uint16(place + 1)
	}
	if rc.decidedIn(take) < it.part && !take.Passes() {
		return deniedElsewhere
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
				it.perhaps = !rc.redis.returns.failed(undo, err)
			default: // the state that undoing it has left, and its own verdict
				undo.Answer.Allowed, undo.Answer.Missing = it.Answer.Allowed, it.Answer.Missing
				it.now, it.Answer = undo.now, undo.Answer
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
		undo.key, undo.slot = it.key, it.slot
		it.Answer.Charged = false
	}
	back.split()
	return back
}

// giveBackUnits returns what items have charged, and does not wait for it. Their
// call was refused before Redis executed it.
func (r *redisLayer) giveBackUnits(charged []*item) {
	back := r.returnsOf(charged)
	for i := range back.groups {
		g := &back.groups[i]
		g.whenEnded = func(err error) {
			if err == nil {
				return
			}
			for _, undo := range g.items {
				r.returns.failed(undo, err)
			}
		}
		g.lane.post(g)
	}
}
