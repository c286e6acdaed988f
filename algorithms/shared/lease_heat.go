package algorithms

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// heatEpoch is the time in which takes are counted to find hot keys.
const heatEpoch = 100 * time.Millisecond

// slotsPerKey keeps hot keys apart: of two that share a slot one is leased, and
// the other's takes go to the limiter below.
const slotsPerKey = 16

// heat finds the keys that are asked for often, without memory for any other.
type heat struct {
	seed  maphash.Seed
	slots []slot // a power of two
}

// A slot counts the takes of one key in an epoch. Those of other keys that fall
// into it vote it out, so that no key's count exceeds its own takes.
type slot struct {
	votes atomic.Uint64          // count, and of what: see voted
	hot   atomic.Pointer[hotKey] // a key that has been found hot
}

func newHeat(maxKeys int) *heat {
	return &heat{seed: maphash.MakeSeed(), slots: make([]slot, 1<<bits.Len(uint(maxKeys*slotsPerKey-1)))}
}

func (h *heat) slot(id identity) (s *slot, hash uint64) {
	hash = maphash.Comparable(h.seed, id)
	return &h.slots[hash&uint64(len(h.slots)-1)], hash
}

// vote counts a take, and returns how many the key has in this epoch.
func (s *slot) vote(hash uint64, now time.Duration) (count int) {
	of := hash>>32<<32 | uint64(uint16(now/heatEpoch))<<16
	for {
		old := s.votes.Load()
		votes := voted(old, of)
		if s.votes.CompareAndSwap(old, votes) {
			if votes>>16 != of>>16 {
				return 0
			}
			return int(uint16(votes))
		}
	}
}

// voted returns a slot's votes after one more. They are 32 bits of a key's
// hash, 16 of the epoch, and 16 of the count: its place is taken over when it
// has fallen to 0, and with the epoch.
func voted(votes, of uint64) uint64 {
	const count = 1<<16 - 1
	switch {
	case votes>>16 == of>>16:
		return votes&^count | min(votes&count+1, count)
	case uint16(votes>>16) != uint16(of>>16) || votes&count == 0:
		return of | 1
	default:
		return votes - 1
	}
}
