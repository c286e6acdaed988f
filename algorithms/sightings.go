package algorithms

import (
	"hash/maphash"
	"sync"
)

// sightings remember what the primary last held against keys that it denied, or
// that have spent half of their burst, in 2 MiB. There are 65 536 places: of so
// many such keys about a third are forgotten, since another came to their place.
type sightings struct {
	seed   maphash.Seed
	shards [64]struct {
		mu     sync.Mutex
		places [1024]sighting
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

// take returns what the primary holds against a check's key by now, 0 if that is
// not known, and forgets it.
func (s *sightings) take(c *Check, now int64) (used int64) {
	s.visit(c, func(place *sighting, hash uint64) {
		if place.hash != hash {
			return
		}
		if now < place.reset {
			used = min(place.used, c.Limit.burst)
		}
		if !c.Limit.algorithm.Aligned() && now > place.at && used > 0 {
			left, exact := mulDiv(used, place.reset-now, place.reset-place.at)
			if used = left; !exact {
				used++
			}
		}
		*place = sighting{}
	})
	return used
}

func (s *sightings) visit(c *Check, f func(place *sighting, hash uint64)) {
	hash := maphash.Comparable(s.seed, identityOf(c))
	sh := &s.shards[hash%uint64(len(s.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f(&sh.places[hash/uint64(len(s.shards))%uint64(len(sh.places))], hash)
}
