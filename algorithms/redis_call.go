package algorithms

import (
	"context"
	"errors"
	"slices"
)

// A call is the items of one Allow on their way through Redis.
type call struct {
	r     *Redis
	items []redisItem
	parts int // scripts it takes
}

// A redisItem is an item with its stored key.
type redisItem struct {
	item
	key  string
	part int   // which script it is in, noPart if in none
	now  int64 // the clock of that script, in µs
}

const noPart = -1

func (r *Redis) newCall(checks []Check) (*call, error) {
	plain, err := newItems(make([]item, 0, len(checks)), checks, Shared)
	if err != nil {
		return nil, err
	}
	c := &call{r: r, items: make([]redisItem, len(plain))}
	prefix := r.prefix + ":"
	for i := range plain {
		key := string(appendStored(nil, prefix, &checks[i]))
		if err := share(plain, i, func(j int) bool { return c.items[j].key == key }); err != nil {
			return nil, err
		}
		c.items[i] = redisItem{item: plain[i], key: key}
	}
	c.split()
	return c, nil
}

// split gives every item its script, in order of their first items. Nobody and
// receipts of other limiters need none.
func (c *call) split() {
	p := placement(c.r.placement.Load())
	var firsts []string // keys, one per part
	for i := range c.items {
		it := &c.items[i]
		it.part = noPart
		if it.algo == algorithmNobody || it.dropped {
			it.answer.allowed = it.op.settles()
			continue
		}
		it.part = slices.IndexFunc(firsts, func(first string) bool { return p.joins(first, it.key) })
		if it.part < 0 {
			it.part = len(firsts)
			firsts = append(firsts, it.key)
		}
	}
	c.parts = len(firsts)
}

// run decides the call, part by part. If a later part fails or denies, what
// earlier ones took is given back.
func (c *call) run(ctx context.Context) error {
	for part := range c.parts {
		if err := c.runPart(ctx, part); err != nil {
			if part > 0 {
				c.giveBack(ctx, func(*redisItem) bool { return true })
			}
			return err
		}
	}
	if c.parts > 1 && !c.items[0].op.settles() {
		c.giveBack(ctx, func(it *redisItem) bool { return c.othersDenied(it) > 0 })
	}
	return nil
}

func (c *call) runPart(ctx context.Context, part int) error {
	script := newScript(c, part)
	reply, err := c.r.evaluate(ctx, script)
	if err != nil {
		return err
	}
	return script.read(reply)
}

// denied returns how many takes are denied so far, outside of a part.
func (c *call) deniedOutside(part int) (n int) {
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
	n := c.deniedOutside(c.parts)
	if it.op == TrialInstead && !c.items[it.instead].answer.allowed {
		n--
	}
	return n
}

// giveBack returns the charged items that wrongly says are, the last one first:
// a leaky bucket can undo only its newest take.
func (c *call) giveBack(ctx context.Context, wrongly func(*redisItem) bool) {
	var back call
	var of []*redisItem
	for i := len(c.items) - 1; i >= 0; i-- {
		it := &c.items[i]
		if !it.answer.charged || !wrongly(it) {
			continue
		}
		undo := *it
		undo.op, undo.home = Return, len(of)
		undo.receipt = Receipt{units: it.cost, t: it.answer.t, n: it.answer.n, f: it.answer.f}
		back.items = append(back.items, undo)
		of = append(of, it)
		it.answer.charged = false
	}
	if of == nil {
		return
	}
	back.r = c.r
	back.split()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	defer cancel()
	var errs []error
	for part := range back.parts {
		errs = append(errs, back.runPart(ctx, part))
	}
	for i, it := range of {
		if back.items[i].now != 0 {
			it.now = back.items[i].now
			it.put(back.items[i].answer)
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.r.observe(Event{Kind: EventReturnFailed, Err: err})
	}
}
