package algorithms

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A call is the items of one Allow on their way through Redis. It holds
// nothing of the caller's but what it has copied, since it may be on its way
// still when the caller has given up.
type call struct {
	r      *Redis
	items  []redisItem
	groups []group // one for each script that it takes
	split  placement

	plain []item // the items, before they have keys
	keys  []byte // the stored keys, one after the other, and where each ends
	ends  []int
}

// maxPooled bounds the calls that are kept for others to use.
const maxPooled = 32

// free gives back a call all of whose groups have been answered. One that was
// given up must not be: what it is in may be under way still.
func (c *call) free() {
	if len(c.items) > maxPooled {
		return
	}
	clear(c.plain)
	clear(c.items)
	for i := range c.groups {
		c.groups[i].reset()
	}
	c.r.calls.Put(c)
}

// A redisItem is an item with its stored key.
type redisItem struct {
	item
	limit Limit
	key   string
	part  int   // which script it is in, noPart if in none
	now   int64 // the clock of that script, in µs
	// except is, of TrialInstead, the place in its group of the take to leave
	// out, from 1; 0 or deniedElsewhere if that is in another.
	except uint16
}

const (
	noPart          = -1
	deniedElsewhere = math.MaxUint16
)

func (r *Redis) newCall(checks []Check) (*call, error) {
	c := r.calls.Get().(*call)
	var err error
	if c.plain, err = newItems(c.plain[:0], checks, Shared); err != nil {
		return nil, err
	}
	c.storeKeys(checks)
	for i := range c.items {
		it := &c.items[i]
		if err := share(c.plain, i, func(j int) bool { return c.items[j].key == it.key }); err != nil {
			return nil, err
		}
		it.item, it.limit = c.plain[i], checks[i].Limit
		it.check = nil
	}
	c.place()
	return c, nil
}

// storeKeys makes the items, with their stored keys. These are parts of one
// string, so that a call allocates only that.
func (c *call) storeKeys(checks []Check) {
	c.keys, c.ends = c.keys[:0], c.ends[:0]
	for i := range checks {
		c.keys = appendStored(append(c.keys, c.r.prefix...), &checks[i])
		c.ends = append(c.ends, len(c.keys))
	}
	keys, begin := string(c.keys), 0
	c.items = c.items[:0]
	for _, end := range c.ends {
		c.items = append(c.items, redisItem{key: keys[begin:end]})
		begin = end
	}
}

// place gives every item its script, in the order of their first items. Nobody
// and receipts of other limiters need none.
func (c *call) place() {
	c.split = placement(c.r.placement.Load())
	parts := 0
	for i := range c.items {
		it := &c.items[i]
		it.part = noPart
		if it.algo == algorithmNobody || it.dropped {
			it.answer.allowed = it.op.settles()
			continue
		}
		for j := range i {
			if c.items[j].part != noPart && c.split.joins(c.items[j].key, it.key) {
				it.part = c.items[j].part
				break
			}
		}
		if it.part == noPart {
			it.part = parts
			parts++
		}
	}
	c.groups = slices.Grow(c.groups[:0], parts)[:parts]
}

// errPartly is wrapped by errors of calls of which a part was executed.
var errPartly = errors.New("in a later slot")

// run decides the call. A batch keeps the timeout, but several one after the
// other would keep it each: those after the first have what it leaves.
func (c *call) run(ctx context.Context) error {
	if len(c.groups) < 2 {
		return c.runParts(ctx, ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, c.r.timeout)
	defer cancel()
	return c.runParts(ctx, bounded)
}

// runParts decides part by part. If a later one fails or denies, what earlier
// ones took is given back.
func (c *call) runParts(ctx, later context.Context) error {
	if len(c.groups) > 0 {
		if err := c.runPart(ctx, 0); err != nil {
			return err
		}
	}
	for part := 1; part < len(c.groups); part++ {
		if err := c.runPart(later, part); err != nil {
			// Only of the parts that are done: the one that failed may be on
			// its way still, and its answers are not ours to read.
			c.giveBack(ctx, func(it *redisItem) bool { return it.part < part })
			if ctx.Err() == nil {
				err = ownDeadline(err)
			}
			return fmt.Errorf("%w: %w", errPartly, err)
		}
	}
	if len(c.groups) > 1 && !c.items[0].op.settles() {
		c.giveBack(ctx, func(it *redisItem) bool { return c.othersDenied(it) > 0 })
	}
	return nil
}

func (c *call) runPart(ctx context.Context, part int) error {
	g := c.group(part)
	return c.r.laneOf(g).submit(ctx, g)
}

// A group is one part of a call: what a script decides together.
type group struct {
	items  []*redisItem
	denied int // takes outside of the group
	tag    string
	slot   uint16

	split placement // by which tag and slot are to be compared

	weight, size int // what it adds to a batch

	queued time.Time
	batch  *batch     // that it is in until it is answered, guarded by its lane's mu
	next   *group     // in the tally of its key
	err    error      // of the batch: what done is sent, in time
	done   chan error // with room for one
}

// reset empties g, but keeps its buffers.
func (g *group) reset() {
	clear(g.items)
	*g = group{items: g.items[:0], done: g.done}
}

func (c *call) group(part int) *group {
	g := &c.groups[part]
	g.reset()
	if g.done == nil {
		g.done = make(chan error, 1)
	}
	g.denied, g.split = c.deniedBefore(part), c.split
	for i := range c.items {
		it := &c.items[i]
		if it.part != part {
			continue
		}
		g.items = append(g.items, it)
		g.weight += it.weight()
		g.size += len(it.key) + checkSize
		if it.op == TrialInstead {
			it.except = c.except(g, it)
		}
	}
	if c.split != together {
		g.tag = hashTag(g.items[0].key)
		g.slot = slotOf(g.tag)
	}
	return g
}

// except finds the take that a TrialInstead leaves out.
func (c *call) except(g *group, it *redisItem) uint16 {
	take := &c.items[it.instead]
	if place := slices.Index(g.items, take); place >= 0 {
		return uint16(place + 1)
	}
	if take.part < it.part && !take.answer.allowed {
		return deniedElsewhere
	}
	return 0 // or not yet asked: the call gives back if need be
}

// deniedBefore returns how many takes are denied that are in no part, or in an
// earlier one.
func (c *call) deniedBefore(part int) (n int) {
	for i := range c.items {
		it := &c.items[i]
		if it.op == Take && it.part < part && !it.answer.allowed {
			n++
		}
	}
	return n
}

// othersDenied returns how many takes are denied that it depends on.
func (c *call) othersDenied(it *redisItem) int {
	n := c.deniedBefore(len(c.groups))
	if it.op == TrialInstead && !c.items[it.instead].answer.allowed {
		n--
	}
	return n
}

// giveBack returns the charged items that wrongly says are, the last one first:
// a leaky bucket can undo only its newest take.
func (c *call) giveBack(ctx context.Context, wrongly func(*redisItem) bool) {
	back := &call{r: c.r}
	var of []*redisItem
	for i := len(c.items) - 1; i >= 0; i-- {
		it := &c.items[i]
		if !wrongly(it) || !it.answer.charged {
			continue
		}
		undo := *it
		undo.op, undo.now = Return, 0
		undo.receipt = it.taken(it.now)
		back.items = append(back.items, undo)
		of = append(of, it)
		it.answer.charged = false
	}
	if of == nil {
		return
	}
	back.place()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	defer cancel()
	var errs []error
	for part := range back.groups {
		if err := back.runPart(ctx, part); err != nil {
			errs = append(errs, ownDeadline(err))
			continue
		}
		for i, it := range of {
			if back.items[i].part == part {
				it.now = back.items[i].now
				it.put(back.items[i].answer)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.r.observe(Event{Kind: EventReturnFailed, Err: err})
	}
}
