// How a Memory decides a call: find the shards of its keys, lock them, read the
// clock, load the states, decide, store the changed ones.
//
// The clock is read under the locks. Suppose that a caller read the clock
// first, and that the machine stopped it before it got the locks. It would find
// states later than its instant, mistake them for a clock that stepped back,
// and repair them.

package algorithms

import (
	"errors"
	"math/bits"
	"sync"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// take decides a call of one valid Take, with a step that needs no Item. It writes
// the Decision in place, because a Decision is large.
func (m *Memory) take(policy, key string, l *step.Limit, cost int64, d *Decision) error {
	var n name
	n.set(policy, key, l.Scope.ID)
	hash := n.hash(m.seed)
	sh := m.shard(hash)
	sh.mu.Lock() // no defer: it costs 3 ns of 100
	now := m.now()
	if !representable(now) {
		sh.mu.Unlock()
		return errClock(now)
	}
	r := sh.records.find(chainHash(hash), &n)
	var s step.State
	if r != nil {
		s = r.state()
	}
	var t step.Lone
	if l.Bucket() {
		t.TakeBucket(s, now, cost, l)
	} else {
		// Arguments of interface calls escape, so l itself would cost Allow an allocation.
		sh.scratch = *l
		t.Take(s, now, cost, &sh.scratch)
	}
	switch {
	case t.Charged && r == nil:
		if r = sh.reserve(m, chainHash(hash), &n, now, nil); r == nil {
			sh.mu.Unlock()
			d.decide(step.Refused(), Undecided)
			d.Receipt = Receipt{}
			return nil
		}
	case !t.Allowed && r != nil:
		r.deniedAt = now
	}
	if t.Dirty && r != nil {
		sh.write(r, t.State, t.FullAt)
	}
	sh.tend(m, now)
	sh.mu.Unlock()
	d.ofLone(&t, l, now, cost)
	return nil
}

// ofLone writes the decision on a take of cost units.
func (d *Decision) ofLone(t *step.Lone, l *step.Limit, now, cost int64) {
	d.Allowed, d.Source, d.Remaining = t.Allowed, Local, max(0, l.Burst-t.Used)
	d.ResetAfter, d.UnitAfter, d.Delay = step.Until(t.FullAt, now), step.Until(t.UnitAt, now), step.Until(t.ServeAt, now)
	if d.RetryAfter = 0; !t.Allowed {
		d.RetryAfter = t.RetryAfter(l, now, cost)
	}
	if t.Charged {
		t.Receipt(&d.Receipt.step, l, cost, uint8(Local))
	} else {
		d.Receipt = Receipt{}
	}
}

// A workspace is the memory of a call of several checks. It is pooled, because
// arguments of interface calls escape to the heap.
type workspace struct {
	places [4]place
	items  [4]*step.Item
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// release forgets everything that belongs to the caller of n checks.
func (w *workspace) release(n int) {
	for i := range w.places[:min(n, len(w.places))] {
		p := &w.places[i]
		p.Forget()
		p.name, p.record = name{}, nil
	}
	clear(w.items[:])
	workspaces.Put(w)
}

// A place is an item, and the record of its key.
type place struct {
	step.Item
	name   name
	hash   uint64
	record *record // at the home of a key; nil if there is none
}

// call decides any call: of several checks, or of settlements.
func (m *Memory) call(checks []Check) error {
	if err := step.CheckSize(len(checks)); err != nil {
		return err
	}
	w := workspaces.Get().(*workspace)
	defer w.release(len(checks))
	places := w.places[:]
	if len(checks) > len(places) {
		places = make([]place, len(checks))
	}
	places = places[:len(checks)]
	call := step.Call{Items: w.items[:0]}
	var errs []error
	for i := range checks {
		p := &places[i]
		err := checks[i].Item(&p.Item)
		if err == nil {
			p.Dropped = p.Op.Reads() && p.Receipt.Units > 0 && p.Receipt.Source != uint8(Local)
			p.name.set(p.Key.Policy, p.Key.Text, p.Key.Scope.ID)
			p.hash = p.name.hash(m.seed)
			err = call.Add(&p.Item)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	now, err := m.decide(&call, places)
	if err != nil {
		return err
	}
	for i := range places {
		checks[i].Decision.decide(places[i].Figures(now), Local)
		places[i].Left(&checks[i].Decision.Receipt.step, uint8(Local))
	}
	return nil
}

// decide loads the states of a call's keys, decides it, and stores the changed
// states. It returns the instant of the decision.
func (m *Memory) decide(call *step.Call, places []place) (now int64, err error) {
	set := uint64(0)
	for i := range places {
		set |= m.shardBit(places[i].hash)
	}
	m.lock(set)
	defer m.unlock(set)
	if now = m.now(); !representable(now) {
		return 0, errClock(now)
	}
	for i := range places {
		p := &places[i]
		if p.Home != &p.Item || p.Limit.Row == step.Nobody {
			continue
		}
		if p.record = m.shard(p.hash).records.find(chainHash(p.hash), &p.name); p.record != nil {
			p.Held = step.Held{State: p.record.state(), Exists: true}
		}
	}
	call.Decide(now, func(it *step.Item) bool { return m.room(it, places, now) })
	for i := range places {
		places[i].store(&places[places[i].Home.Index], now)
	}
	for i := range places {
		p := &places[i]
		if p.record != nil && (p.Held.Dirty && p.Held.State.Empty() || !p.Held.Dirty && !p.Held.Exists) {
			m.shard(p.hash).records.remove(p.record)
		}
	}
	for i := range places { // last: a sweep may remove the records of this call
		m.shard(places[i].hash).tend(m, now)
	}
	return now, nil
}

// room reserves a record for the key of an item that charges it, if the key is
// new. It marks the item as refused if there is no room. It requires the shards'
// mu.
func (m *Memory) room(it *step.Item, places []place, now int64) bool {
	home := &places[it.Home.Index]
	if home.record == nil {
		home.record = m.shard(home.hash).reserve(m, chainHash(home.hash), &home.name, now, places)
	}
	it.Refused = home.record == nil
	return !it.Refused
}

// store writes back the state that an item changed at its home. It requires the
// shard's mu.
func (p *place) store(home *place, now int64) {
	r := home.record
	if r == nil {
		return
	}
	if home.Held.Dirty && !home.Held.State.Empty() {
		full := r.fullAt // a Grant keeps it
		switch {
		case p.Op == step.Grant:
		case home == p:
			full = p.FullAt()
		default: // several limits on one key: the key lives until the last limit is full
			full = max(full, p.FullAt())
		}
		r.put(home.Held.State, full)
	}
	if p.Op.Takes() && !p.Answer.Allowed {
		r.deniedAt = now
	}
}

// lock locks the shards of a set, in one order, so that no two calls wait for each
// other.
func (m *Memory) lock(set uint64) {
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Lock()
	}
}

func (m *Memory) unlock(set uint64) {
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Unlock()
	}
}

// The low half of a hash selects the shard, the high half a chain in it.
func (m *Memory) shard(hash uint64) *shard { return &m.shards[int(hash)&(len(m.shards)-1)] }

// shardBit returns the shard of a hash as a set.
func (m *Memory) shardBit(hash uint64) uint64 { return 1 << (int(hash) & (len(m.shards) - 1)) }

func chainHash(hash uint64) uint32 { return uint32(hash >> 32) }
