package algorithms

import (
	"hash/maphash"
	"sync"
)

// sightings remember what the primary last held against keys that it denied, or
// that have spent half of their burst, in 2 MiB. There are 65 536 places in
// pairs, and a key may have either of one pair: of 10 000 such keys about 1 % are
// forgotten, since others came to both, of 65 536 a quarter.
type sightings struct {
	seed   maphash.Seed
	shards [64]struct {
		mu    sync.Mutex
		pairs [512][2]sighting
	}
}

// A sighting is worth nothing when its reset has come.
type sighting struct {
	hash  uint64 // of the identity
	used  int64
	at    int64 // µs
	reset int64 // µs
}

func newSightings() *sightings { return &sightings{seed: maphash.MakeSeed()} }

// note remembers what the primary has just answered.
func (s *sightings) note(checks []Check) {
	for i := range checks {
		c := &checks[i]
		used := c.Limit.burst - c.Decision.Remaining
		if c.Limit.algorithm.Concurrent() { // what runs elsewhere is not returned here
			continue
		}
		if c.Decision.Source != Shared || c.Op != Take || used*2 < c.Limit.burst || used <= 0 {
			continue
		}
		now := nowMicro()
		s.visit(c, func(place *sighting, hash uint64) {
			*place = sighting{hash: hash, used: used, at: now, reset: now + c.Decision.ResetAfter.Microseconds()}
		})
	}
}

// tell tells what the primary holds against a check's key by now, if that is
// known, and forgets it. Whoever else asks of the key waits until it is told: not
// to find that nothing is known, and begin anew.
func (s *sightings) tell(c *Check, now int64, told func(used int64)) {
	s.visit(c, func(place *sighting, hash uint64) {
		if place.hash != hash {
			return
		}
		if used := place.by(now, c.Limit); used > 0 {
			told(used)
		}
		*place = sighting{}
	})
}

// forget drops what is known of a check's key.
func (s *sightings) forget(c *Check) { s.tell(c, nowMicro(), func(int64) {}) }

// by returns what is held by now of what was seen.
func (s *sighting) by(now int64, l Limit) int64 {
	if now >= s.reset {
		return 0
	}
	used := min(s.used, l.burst)
	if l.algorithm.Aligned() || now <= s.at {
		return used
	}
	left, exact := mulDiv(used, s.reset-now, s.reset-s.at)
	if !exact {
		left++
	}
	return left
}

// visit calls f with the place of a check's key, or if it has none with that of
// its pair which was seen longer ago.
func (s *sightings) visit(c *Check, f func(place *sighting, hash uint64)) {
	hash := maphash.Comparable(s.seed, identityOf(c))
	sh := &s.shards[hash%uint64(len(s.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	pair := &sh.pairs[hash/uint64(len(s.shards))%uint64(len(sh.pairs))]
	place := &pair[0]
	if other := &pair[1]; other.hash == hash || (place.hash != hash && other.at < place.at) {
		place = other
	}
	f(place, hash)
}
