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
	total uint64
	slots []slot           // at most sketchSlots
	index map[uint64]int32 // of a key's slot, by its hash
	heap  []int32          // slots; the least count is first
}

type slot struct {
	hash         uint64
	key          []byte // its first bytes
	count, error uint64
	first, last  time.Duration
	note         *Note // of the last occurrence; nil: empty. Its value never changes
	place        int   // in the heap
}

func (s slot) clone() slot {
	s.key = slices.Clone(s.key)
	return s
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
	switch {
	case known:
	case len(s.slots) < sketchSlots:
		i = s.grow(now)
	default:
		i = s.heap[0]
		evicted := &s.slots[i]
		delete(s.index, evicted.hash)
		evicted.error, evicted.first = evicted.count, now
	}
	e = &s.slots[i]
	if !known {
		s.index[hash] = i
		e.hash, e.key = hash, append(e.key[:0], key[:min(len(key), sketchKey)]...)
	}
	e.count++
	e.last = now
	s.sink(e.place)
	return e, known
}

// grow adds a slot, whose count is the least of all.
func (s *sketch) grow(now time.Duration) int32 {
	if s.index == nil {
		s.index = make(map[uint64]int32, sketchSlots)
	}
	i := len(s.slots)
	if i < cap(s.slots) {
		s.slots = s.slots[:i+1] // with its buffer
	} else {
		s.slots = append(s.slots, slot{})
	}
	e := &s.slots[i]
	*e = slot{key: e.key, first: now, place: i}
	s.heap = append(s.heap, int32(i))
	for p := i; p > 0; p = (p - 1) / 2 {
		s.swap(p, (p-1)/2)
	}
	return int32(i)
}

// sink restores the heap after the count at place p has grown.
func (s *sketch) sink(p int) {
	for {
		child := 2*p + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && s.countAt(child+1) < s.countAt(child) {
			child++
		}
		if s.countAt(p) <= s.countAt(child) {
			return
		}
		s.swap(p, child)
		p = child
	}
}

func (s *sketch) countAt(p int) uint64 { return s.slots[s.heap[p]].count }

func (s *sketch) swap(p, q int) {
	s.heap[p], s.heap[q] = s.heap[q], s.heap[p]
	s.slots[s.heap[p]].place, s.slots[s.heap[q]].place = p, q
}

// least returns the most that a key can have been counted that is not in it.
func (s *sketch) least() uint64 {
	if len(s.slots) < sketchSlots {
		return 0
	}
	return s.countAt(0)
}

// clear forgets everything, and keeps the memory.
func (s *sketch) clear() {
	clear(s.index)
	s.total, s.slots, s.heap = 0, s.slots[:0], s.heap[:0]
}
