// Package topk counts how often each of many keys occurs, and remembers only the most frequent.
package topk

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An Entry is a key and how often it occurred in the last ten to twenty minutes. The bytes of a long key are cut.
type Entry struct {
	Key string

	// Count is at most Error too high.
	Count, Error uint64

	// First and Last are when the key occurred, as durations since the caller's epoch. First is the first time after an
	// hour without the key, or after it was forgotten.
	First, Last time.Duration

	// Note is the note of the last occurrence.
	Note Note
}

// A Note says what decided an occurrence.
type Note struct {
	Tier    string           // of the identity
	LimitOf algorithms.Limit // what Policy.LimitOf returned; zero: nothing
}

// A Tally counts the occurrences of keys, in two generations, so that old occurrences leave it. The zero Tally is empty and
// ready for use. It is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex // guards the fields below
	sketches [2]sketch
	began    time.Duration   // the generation of sketches[0]
	before   map[uint64]span // of keys that have left the sketches, by their hashes
}

// A span is when a key occurred first and last.
type span struct{ first, last time.Duration }

const (
	generation = 10 * time.Minute
	hour       = time.Hour // a key that has not occurred for so long begins again
	maxBefore  = 512
)

// Add counts a key at a time since the caller's epoch. The hash identifies the key. A nil note is an empty one.
func (t *Tally) Add(hash uint64, key string, note *Note, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	recent, past := &t.sketches[0], &t.sketches[1]
	e, known := recent.add(hash, key, now)
	e.annotate(note)
	if known {
		return
	}
	if s, ok := t.before[hash]; ok && now-s.last < hour {
		e.first = s.first
	}
	if i, ok := past.index[hash]; ok {
		e.first = past.slots[i].first
	}
}

// leave remembers when the keys of a sketch occurred that is about to be cleared. It requires mu.
func (t *Tally) leave(s *sketch, now time.Duration) {
	maps.DeleteFunc(t.before, func(_ uint64, s span) bool { return now-s.last >= hour })
	if t.before == nil && len(s.slots) > 0 {
		t.before = make(map[uint64]span)
	}
	for i := range s.slots {
		e := &s.slots[i]
		if _, known := t.before[e.hash]; known || len(t.before) < maxBefore {
			t.before[e.hash] = span{e.first, e.last}
		}
	}
}

// turn begins a new generation if it is time. The sketches keep their memory. It requires mu.
func (t *Tally) turn(now time.Duration) {
	if now-t.began < generation {
		return
	}
	for range min((now-t.began)/generation, 2) {
		t.sketches[0], t.sketches[1] = t.sketches[1], t.sketches[0]
		t.leave(&t.sketches[0], now)
		t.sketches[0].clear()
	}
	t.began = now - now%generation
}

// Top returns the remembered keys, those first that certainly occurred most often, and the number of all occurrences.
func (t *Tally) Top(now time.Duration) (top []Entry, total uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	recent, past := &t.sketches[0], &t.sketches[1]
	leastRecent, leastPast := recent.least(), past.least()
	for i, s := range recent.slots {
		e := s.entry(recent.counts[i])
		if j, ok := past.index[s.hash]; ok {
			e.Count, e.Error = e.Count+past.counts[j], e.Error+past.slots[j].error
		} else {
			e.Count, e.Error = e.Count+leastPast, e.Error+leastPast
		}
		top = append(top, e)
	}
	for i, s := range past.slots {
		if _, ok := recent.index[s.hash]; !ok {
			e := s.entry(past.counts[i])
			e.Count, e.Error = e.Count+leastRecent, e.Error+leastRecent
			top = append(top, e)
		}
	}
	slices.SortFunc(top, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count-b.Error, a.Count-a.Error), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return top, recent.total + past.total
}

// entry returns a key of a sketch, which it copies.
func (s *slot) entry(count uint64) Entry {
	e := Entry{Key: string(s.key), Count: count, Error: s.error, First: s.first, Last: s.last}
	if s.note != nil {
		e.Note = *s.note
	}
	return e
}
