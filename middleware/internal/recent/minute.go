// Package recent counts the events of the last minute, and estimates quantiles
// of their durations.
//
// Time is divided into ticks. Counts only grow. At the start of each tick a
// Minute copies them, and it keeps the copies of a minute. The difference between
// the counts and the oldest copy covers a minute, and the part of a tick that has passed.
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

// A Minute counts events of several kinds. Make it with [NewMinute]. Its instants
// are durations since a moment that the caller chooses, and never negative. A
// Minute is safe for concurrent use.
type Minute struct {
	tick   time.Duration
	counts []atomic.Uint32 // they may wrap around: a difference stays right
	ends   atomic.Int64    // when the latest tick ends

	mu     sync.Mutex // guards the fields below
	latest int64      // the last tick whose first counts are in starts
	starts [][]uint32 // counts at the starts of ticks; see start
}

// NewMinute returns a Minute that begins now, for events of the kinds 0 to
// kinds-1. A minute is a whole number of ticks. A Minute takes four bytes for each kind,
// and for each of its ticks and two more.
func NewMinute(kinds int, tick, now time.Duration) *Minute {
	m := &Minute{tick: tick, counts: make([]atomic.Uint32, kinds), starts: make([][]uint32, time.Minute/tick+1)}
	for i := range m.starts {
		m.starts[i] = make([]uint32, kinds)
	}
	m.latest = int64(now / tick)
	m.ends.Store((m.latest + 1) * int64(tick))
	return m
}

// Add counts one event. It panics if there is no such kind. It neither waits nor
// allocates.
func (m *Minute) Add(kind int, now time.Duration) {
	if int64(now) >= m.ends.Load() && m.mu.TryLock() {
		m.turn(now)
		m.mu.Unlock()
	}
	m.counts[kind].Add(1)
}

// turn copies the counts for the starts of all ticks up to now. The caller's clock may
// lag behind another goroutine's. It requires mu.
func (m *Minute) turn(now time.Duration) {
	next := m.latest + 1
	m.latest = max(m.latest, int64(now/m.tick))
	for t := max(next, m.first()); t <= m.latest; t++ {
		for kind := range m.counts {
			m.start(t)[kind] = m.counts[kind].Load()
		}
	}
	m.ends.Store((m.latest + 1) * int64(m.tick))
}

// first returns the oldest tick of the last minute. It requires mu.
func (m *Minute) first() int64 { return max(0, m.latest+1-int64(len(m.starts))) }

// start returns the counts at the start of a tick of the last minute. It requires mu.
func (m *Minute) start(t int64) []uint32 { return m.starts[t%int64(len(m.starts))] }

// Ticks returns the number of events of some kinds, added up, in each tick of the
// last minute, oldest first. The last tick is not over.
func (m *Minute) Ticks(now time.Duration, kinds ...int) (counts []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	for t := m.first(); t <= m.latest; t++ {
		var n uint32
		for _, kind := range kinds {
			end := m.counts[kind].Load()
			if t < m.latest {
				end = m.start(t + 1)[kind]
			}
			n += end - m.start(t)[kind]
		}
		counts = append(counts, n)
	}
	return counts
}

// Last returns the number of events of each kind in the last minute, and the
// length of that minute: 60 s and a part of a tick, or the time since 0 if less has passed.
func (m *Minute) Last(now time.Duration) (counts []uint32, span time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	begin := m.first()
	counts = make([]uint32, len(m.counts))
	for kind := range counts {
		counts[kind] = m.counts[kind].Load() - m.start(begin)[kind]
	}
	return counts, now - time.Duration(begin)*m.tick
}
