// The use of keys that the primary last reported: of keys that it denied, or that
// have spent half of their burst. The memory starts from it in an outage.
//
// The table takes 2 MiB. It has 65 536 places in pairs, and a key may have either
// place of one pair. Of 10 000 such keys about 1 % are forgotten because others
// came to both places, of 65 536 a quarter.
//
// An entry says how many units were in use at an instant, and when none will be.
// In between, units of buckets and sliding windows are assumed to come back
// evenly. Windows of the clock keep theirs until they turn.

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

// A seenUse is the use of one key. The zero value is none.
type seenUse struct {
	hash  uint64 // of the key
	used  int64
	at    int64 // µs
	reset int64 // µs: no unit is in use from then on
}

// note remembers answers that the primary has just given. Units that requests hold
// while they run are left out: they are returned elsewhere.
func (s *seenTable) note(c *call, clock func() int64) {
	for i := range c.items {
		it := &c.items[i]
		used := it.Limit.Burst - it.decision.Remaining
		if it.Op != step.Take || it.decision.Source != algorithms.Shared || !it.Limit.Row.Owed ||
			used <= 0 || used*2 < it.Limit.Burst {
			continue
		}
		use := seenUse{hash: it.hash, used: used, at: clock()}
		use.reset = use.at + it.decision.ResetAfter.Microseconds()
		s.visit(it, func(place *seenUse) { *place = use })
	}
}

// forgetAfter calls charge with the use of an item's key by now, if any is known,
// and then forgets it.
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

// by returns how many units are in use by now.
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

// visit calls f, under the lock of the shard, with the place of an item's key. If
// the key has none, that is the place of its pair that was seen longer ago.
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
