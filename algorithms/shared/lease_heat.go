// How hot keys are found among any number of keys, in a fixed amount of memory.
//
// A key is hot when it has had enough admitted takes in one epoch. Keys are
// spread over slots by their hashes. A slot has one counter, and counts by the
// majority vote of Boyer and Moore ("MJRTY: A Fast Majority Vote Algorithm",
// 1981): a take of the slot's own key adds one vote, and a take of any other key
// removes one. At zero votes, the next key takes the slot over. Each epoch begins
// at zero.
//
// Votes are only added by takes of the key itself, so its count never exceeds its
// takes: a cold key never becomes hot. A key that has more takes than all other
// keys of its slot together is the only one that can win the slot, and wins it by
// the difference at least. There are 16 slots for each key that may be leased, so
// the other takes of a slot are few.

package shared

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// heatEpoch is the time in which takes are counted.
	heatEpoch = 100 * time.Millisecond

	// slotsPerKey keeps hot keys apart. Only one key of a slot can be leased; the
	// limiter below decides the takes of the others.
	slotsPerKey = 16

	// A slot's votes are 32 bits of a key's hash, 16 of the epoch, and 16 of the
	// count.
	countBits = 16
	maxVotes  = 1<<countBits - 1
)

// heat holds the slots of all keys: a power of two.
type heat []slot

// A slot counts the takes of one key.
type slot struct {
	votes atomic.Uint64
	hot   atomic.Pointer[hotKey] // the slot's key that is leased; nil if none
}

func newHeat(maxKeys int) heat { return make(heat, 1<<bits.Len(uint(maxKeys*slotsPerKey-1))) }

// slot returns the slot of a key, which the low bits of its hash select.
func (h heat) slot(hash uint64) *slot { return &h[hash&uint64(len(h)-1)] }

// vote counts a take of a key, and returns the key's votes in this epoch.
func (s *slot) vote(hash uint64, now time.Duration) (count int) {
	voter := hash>>32<<32 | uint64(uint16(now/heatEpoch))<<countBits
	for {
		old := s.votes.Load()
		votes := voted(old, voter)
		if s.votes.CompareAndSwap(old, votes) {
			if votes>>countBits != voter>>countBits {
				return 0
			}
			return int(votes & maxVotes)
		}
	}
}

// voted returns a slot's votes after one more by a voter, which is a key and an
// epoch in the bits of votes.
func voted(votes, voter uint64) uint64 {
	count := votes & maxVotes
	switch {
	case votes>>countBits == voter>>countBits:
		return voter | min(count+1, maxVotes)
	case uint16(votes>>countBits) != uint16(voter>>countBits) || count == 0:
		return voter | 1
	default:
		return votes - 1
	}
}
