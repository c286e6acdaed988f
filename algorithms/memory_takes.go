// How a Memory decides several takes on different keys, under limits whose states have
// a constant size: the commonest call of a service with several limits. It needs no Items, because no take changes another's
// state. First each take gets its verdict as if it were alone. If one is denied, none
// is charged: the others are asked again for their figures, at no cost.
//
// Example: takes A, B and C. A and C fit, and B does not. All three are written
// uncharged. A and C have the figures of a take of cost 0.

package algorithms

import "github.com/penstock-go/penstock/algorithms/internal/step"

// maxTakes bounds the takes of takes, whose memory is on the stack.
const maxTakes = 4

// A lonely is one of several takes.
type lonely struct {
	step.Lone
	name   name
	hash   uint64
	record *record // nil: the key is new
	stored step.State
}

// takes decides a call of such takes. It reports false, and does nothing, if the call
// is another one.
func (m *Memory) takes(checks []Check) bool {
	var room [maxTakes]lonely
	all, set := room[:len(checks)], uint64(0)
	for i := range checks {
		c, t := &checks[i], &all[i]
		if c.Op != Take || !c.valid() || !c.Limit.step.Row.Counted {
			return false
		}
		t.name.set(c.Policy, c.Key, c.Limit.step.Scope.ID)
		t.hash = t.name.hash(m.seed)
		for j := range i {
			if all[j].hash == t.hash && all[j].name == t.name {
				return false
			}
		}
		set |= m.shardBit(t.hash)
	}
	m.lock(set)
	now := m.now()
	if !m.judge(checks, all, now) {
		m.unlock(set)
		return false
	}
	for i := range all {
		m.settle(&all[i], now)
	}
	for i := range all { // last: a sweep may remove the records of this call
		m.shard(all[i].hash).tend(m, now)
	}
	m.unlock(set)
	for i := range checks {
		c, t := &checks[i], &all[i]
		c.Decision.ofLone(&t.Lone, &c.Limit.step, now, c.units())
	}
	return true
}

// judge gives all takes their verdicts. It reports false if the instant is invalid, or
// if a shard may have no room for new keys. It requires the shards' mu.
func (m *Memory) judge(checks []Check, all []lonely, now int64) bool {
	if !representable(now) {
		return false
	}
	for i := range all { // in a loop of its own, so that cache misses overlap
		t := &all[i]
		sh := m.shard(t.hash)
		if t.record = sh.records.find(chainHash(t.hash), &t.name); t.record == nil && sh.records.keys+len(all) > sh.limit {
			return false
		}
	}
	allowed := true
	for i := range all {
		t := &all[i]
		if t.record != nil {
			t.stored = t.record.state()
		}
		t.Take(t.stored, now, checks[i].units(), &checks[i].Limit.step)
		allowed = allowed && t.Allowed
	}
	if allowed {
		return true
	}
	for i := range all {
		if t := &all[i]; t.Allowed {
			t.Lone = step.Lone{}
			t.Take(t.stored, now, 0, &checks[i].Limit.step)
		}
	}
	return true
}

// settle stores the state of a take. It requires the shard's mu.
func (m *Memory) settle(t *lonely, now int64) {
	sh := m.shard(t.hash)
	switch {
	case t.Charged && t.record == nil:
		t.record = sh.reserve(m, chainHash(t.hash), &t.name, now, nil) // judge has found room
	case !t.Allowed && t.record != nil:
		t.record.deniedAt = now
	}
	if t.Dirty && t.record != nil {
		sh.write(t.record, t.State, t.FullAt)
	}
}
