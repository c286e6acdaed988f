package topk

import (
	"slices"
	"time"
)

const (
	sketchSlots = 128
	// A key is kept up to this length: what is made of it for people is short.
	sketchKey = 128
)

// A sketch counts the most frequent of any number of keys in little memory:
// Space-Saving (Metwally, Agrawal, El Abbadi 2005). A key that is not in it
// takes the place of the key with the lowest count, and its count, which is how
// much its own may be too high. So of n adds, every key with more than
// n/sketchSlots of them is in it.
type sketch struct {
	total  uint64
	low    uint64 // a count; slots before next have a higher one
	next   int
	slots  []slot              // at most sketchSlots
	counts [sketchSlots]uint64 // of the slots
	index  map[uint64]int      // of a key's slot, by its hash
}

type slot struct {
	hash        uint64
	key         []byte // its first bytes
	error       uint64
	first, last time.Duration
	note        *Note // of the last occurrence; nil: empty. Its value never changes
}

// annotate replaces the note by a copy of another one.
func (s *slot) annotate(note *Note) {
	switch {
	case note == nil:
		s.note = nil
	case s.note == nil || *s.note != *note:
		copied := *note
		s.note = &copied
	}
}

// add counts a key. It allocates for keys that it did not know, until it has
// been full for a while. It returns the key's slot, and whether it knew the key.
func (s *sketch) add(hash uint64, key string, now time.Duration) (e *slot, known bool) {
	s.total++
	i, known := s.index[hash]
	if !known {
		i = s.place(now)
		s.index[hash] = i
		e = &s.slots[i]
		e.hash, e.key = hash, append(e.key[:0], key[:min(len(key), sketchKey)]...)
	}
	s.counts[i]++
	e = &s.slots[i]
	e.last = now
	return e, known
}

// place returns the slot of a new key: an empty one, or that of the lowest count.
func (s *sketch) place(now time.Duration) int {
	if s.index == nil {
		s.index = make(map[uint64]int, sketchSlots)
	}
	i := len(s.slots)
	if i == sketchSlots {
		i = s.lowest()
		delete(s.index, s.slots[i].hash)
		s.slots[i].error, s.slots[i].first = s.counts[i], now
		return i
	}
	if i < cap(s.slots) {
		s.slots = s.slots[:i+1] // with its buffer
	} else {
		s.slots = append(s.slots, slot{})
	}
	s.slots[i], s.counts[i] = slot{key: s.slots[i].key, first: now}, 0
	return i
}

// lowest returns the slot of the lowest count. The sketch is full. Counts only grow, so the search goes on where the last
// one has ended, and a flood of new keys costs few steps for each.
func (s *sketch) lowest() int {
	for ; s.next < sketchSlots; s.next++ {
		if s.counts[s.next] == s.low {
			return s.next
		}
	}
	s.low, s.next = slices.Min(s.counts[:]), 0
	return s.lowest()
}

// least returns the most that a key can have been counted that is not in it.
func (s *sketch) least() uint64 {
	if len(s.slots) < sketchSlots {
		return 0
	}
	return s.counts[s.lowest()]
}

// clear forgets everything, and keeps the memory.
func (s *sketch) clear() {
	clear(s.index)
	s.total, s.slots, s.low, s.next = 0, s.slots[:0], 0, 0
}
