// Package recent counts the events of the last minute, and estimates quantiles
// of their durations.
//
// Time is divided into ticks of 5 s. Counts only grow. At the start of each tick
// a Minute copies them, and it keeps the copies of the latest 13 ticks. The
// difference between the counts and the oldest copy covers 60 to 65 s.
//
// No event is lost, because no count is ever reset. An event that is added while
// another goroutine makes the copy falls into the tick before or into the tick
// after. Only one goroutine makes the copy, and the others do not wait for it.
package recent

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	tick        = 5 * time.Second
	minuteTicks = 12
	copies      = minuteTicks + 1
)

// A Minute counts events of several kinds. Make it with [NewMinute]. Its instants
// are durations since a moment that the caller chooses, and never negative. A
// Minute is safe for concurrent use.
type Minute struct {
	counts []atomic.Uint32 // they may wrap around: a difference stays right
	latest atomic.Int64    // the last tick whose first counts are in starts

	mu     sync.Mutex       // guards starts
	starts [copies][]uint32 // counts at the starts of ticks, at tick modulo copies
}

// NewMinute returns a Minute that begins now, for events of the kinds 0 to
// kinds-1. It takes 56 bytes a kind.
func NewMinute(kinds int, now time.Duration) *Minute {
	m := &Minute{counts: make([]atomic.Uint32, kinds)}
	for i := range m.starts {
		m.starts[i] = make([]uint32, kinds)
	}
	m.latest.Store(int64(now / tick))
	return m
}

// Add counts one event. It panics if there is no such kind. It neither waits nor
// allocates.
func (m *Minute) Add(kind int, now time.Duration) {
	if t := int64(now / tick); t > m.latest.Load() && m.mu.TryLock() {
		m.turn(t)
		m.mu.Unlock()
	}
	m.counts[kind].Add(1)
}

// turn copies the counts for the starts of all ticks up to t. It requires mu.
func (m *Minute) turn(t int64) {
	next := m.latest.Load() + 1
	for i := max(next, t-minuteTicks); i <= t; i++ {
		for kind := range m.counts {
			m.starts[i%copies][kind] = m.counts[kind].Load()
		}
	}
	m.latest.Store(max(t, next-1)) // the caller's clock may lag behind another goroutine's
}

// Ticks returns the number of events of some kinds, added up, in each tick of the
// last minute, oldest first. The last tick is not over.
func (m *Minute) Ticks(now time.Duration, kinds ...int) (counts []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(int64(now / tick))
	for t := max(0, m.latest.Load()-minuteTicks); t <= m.latest.Load(); t++ {
		var n uint32
		for _, kind := range kinds {
			end := m.counts[kind].Load()
			if t < m.latest.Load() {
				end = m.starts[(t+1)%copies][kind]
			}
			n += end - m.starts[t%copies][kind]
		}
		counts = append(counts, n)
	}
	return counts
}

// Last returns the number of events of each kind in the last minute, and the
// length of that minute: 60 to 65 s, or the time since 0 if less has passed.
func (m *Minute) Last(now time.Duration) (counts []uint32, span time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(int64(now / tick))
	begin := max(0, m.latest.Load()-minuteTicks)
	counts = make([]uint32, len(m.counts))
	for kind := range counts {
		counts[kind] = m.counts[kind].Load() - m.starts[begin%copies][kind]
	}
	return counts, now - time.Duration(begin)*tick
}
