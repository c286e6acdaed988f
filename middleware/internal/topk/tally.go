// Package topk counts how often each of many keys occurs, and remembers only the most frequent.
package topk

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// An Entry is a key and how often it occurred in the last ten to twenty minutes. The bytes of a long key are cut.
type Entry struct {
	Key string

	// Count is at most Error too high.
	Count, Error uint64

	// First and Last are when the key occurred, as durations since the caller's epoch. First is not before the key was
	// last forgotten.
	First, Last time.Duration
}

// A Tally counts the occurrences of keys. The zero Tally is empty and ready for use. It is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex // guards tally
	tally tally
}

// Add counts a key at a time since the caller's epoch. The hash identifies the key.
func (t *Tally) Add(hash uint64, key string, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.turn(now)
	t.tally.sketches[0].add(hash, key, now)
}

// Top returns the remembered keys, those first that certainly occurred most often, and the number of all occurrences.
func (t *Tally) Top(now time.Duration) (top []Entry, total uint64) {
	t.mu.Lock()
	slots, total := t.tally.top(now)
	t.mu.Unlock()
	for _, s := range slots {
		top = append(top, Entry{string(s.key), s.count, s.error, s.first, s.last})
	}
	return top, total
}

// A tally has two generations of counts, so that old occurrences leave it.
type tally struct {
	sketches [2]sketch
	began    time.Duration // the generation of sketches[0]
}

const generation = 10 * time.Minute

// turn begins a new generation if it is time. The sketches keep their memory.
func (t *tally) turn(now time.Duration) {
	if now-t.began < generation {
		return
	}
	t.sketches[0], t.sketches[1] = t.sketches[1], t.sketches[0]
	t.sketches[0].clear()
	if now-t.began >= 2*generation {
		t.sketches[1].clear()
	}
	t.began = now - now%generation
}

// top returns all keys that are known, those first that were certainly denied
// most, and the number of denials.
func (t *tally) top(now time.Duration) (top []slot, total uint64) {
	t.turn(now)
	recent, past := &t.sketches[0], &t.sketches[1]
	for _, s := range recent.slots {
		if i, ok := past.index[s.hash]; ok {
			before := &past.slots[i]
			s.count, s.error, s.first = s.count+before.count, s.error+before.error, before.first
		} else {
			s.count, s.error = s.count+past.least(), s.error+past.least()
		}
		top = append(top, s.clone())
	}
	for _, s := range past.slots {
		if _, ok := recent.index[s.hash]; !ok {
			s.count, s.error = s.count+recent.least(), s.error+recent.least()
			top = append(top, s.clone())
		}
	}
	slices.SortFunc(top, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.count-b.error, a.count-a.error), cmp.Compare(b.count, a.count), cmp.Compare(a.hash, b.hash))
	})
	return top, recent.total + past.total
}
