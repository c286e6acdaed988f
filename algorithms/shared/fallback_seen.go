// The use of keys that are at least half spent, as the primary last reported
// it. When the primary is gone, the memory begins with that use, so a spent key
// is not full.

package shared

import (
	"sync"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const (
	seenShards = 64
	seenPairs  = 512 // per shard
)

// A seenTable holds the use of keys. The zero value is empty.
type seenTable struct {
	shards [seenShards]struct {
		mu    sync.Mutex
		pairs [seenPairs][2]seenUse
	}
}

// A seenUse is the use of one key. The zero value is no use.
type seenUse struct {
	hash  uint64 // of the key
	used  int64
	at    int64 // µs
	reset int64 // µs: no unit is in use from then on

	// For windows: the limit, and when its first unit is free.
	burst, window int64
	unit          int64 // µs
}

// note remembers the primary's latest answers to takes and returns. It forgets
// a key if less than half of its limit is in use. It skips Concurrent limits,
// because running requests return their units elsewhere.
func (s *seenTable) note(c *call, clock func() int64) {
	for i := range c.items {
		it := &c.items[i]
		d := &it.decision
		if it.Op != step.Take && it.Op != step.Return || d.Source != algorithms.Shared || !it.Limit.Row.Owed {
			continue
		}
		use := seenUse{hash: it.hash, used: it.Limit.Burst - d.Remaining}
		if use.used*2 < it.Limit.Burst || use.used == 0 {
			s.forget(it)
			continue
		}
		use.at = clock()
		use.reset = use.at + d.ResetAfter.Microseconds()
		if refill := it.Limit.Row.Refill; refill == step.AtTurns || refill == step.Sliding {
			use.burst, use.window, use.unit = it.Limit.Burst, it.Limit.Window, use.at+d.UnitAfter.Microseconds()
		}
		s.visit(it, func(place *seenUse) { *place = use })
	}
}

// forget forgets an item's key.
func (s *seenTable) forget(it *item) {
	s.visit(it, func(place *seenUse) {
		if place.hash == it.hash {
			*place = seenUse{}
		}
	})
}

// forgetAfter calls charge with the present use of an item's key, if it is
// known, and then forgets it.
//
// charge runs under the lock of the shard on purpose. Other calls about the key
// must wait until the memory is charged. Otherwise they would find no use here,
// and a full limit there.
func (s *seenTable) forgetAfter(it *item, now int64, charge func(used int64)) {
	s.visit(it, func(place *seenUse) {
		if place.hash != it.hash {
			return
		}
		if used := place.by(now, &it.Limit); used > 0 {
			charge(used)
		}
		*place = seenUse{}
	})
}

// spent returns the use of an item's key if all units of its window are in use
// and will be for some time. The memory has a bucket in the place of the
// window, and the bucket would refill earlier. Under another limit, or before
// the clock stepped back, the use does not say when a unit is free.
func (s *seenTable) spent(it *item, now int64) (use seenUse, spent bool) {
	s.visit(it, func(place *seenUse) { use = *place })
	return use, use.hash == it.hash && use.burst == it.Limit.Burst && use.window == it.Limit.Window &&
		use.used >= use.burst && use.at <= now && now < use.unit
}

// by returns how many units are in use at now.
func (u *seenUse) by(now int64, l *step.Limit) int64 {
	if now >= u.reset {
		return 0
	}
	used := min(u.used, l.Burst)
	if l.Row.Refill == step.AtTurns || now <= u.at {
		return used
	}
	return step.MulDivUp(used, u.reset-now, u.reset-u.at)
}

// visit calls f, under the lock of the shard, with the place of an item's key.
// If the key has none, f gets the older place of its pair.
func (s *seenTable) visit(it *item, f func(place *seenUse)) {
	hash := it.hash
	sh := &s.shards[hash%seenShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	pair := &sh.pairs[hash/seenShards%seenPairs]
	place := &pair[0]
	if other := &pair[1]; other.hash == hash || place.hash != hash && other.at < place.at {
		place = other
	}
	f(place)
}
