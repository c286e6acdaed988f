package middleware

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	tickEvery   = 5 * time.Second
	minuteTicks = 12 // of a minute
)

// A minute counts things of several kinds, and knows how many there were in the
// last minute: more exactly, since the beginning of a tick that is 60 to 65 s
// ago. Its instants are durations since whatever its owner chooses.
//
// Nothing is ever set back, so that no count is lost: what was counted by the
// beginnings of the latest ticks is kept, and differences are formed from that.
type minute struct {
	counts []atomic.Uint32 // modulo 1<<32, which a minute does not reach
	turned atomic.Int64    // the latest tick whose beginning is in past

	mu   sync.Mutex // guards past; it is tried once in a tick
	past [minuteTicks + 1][]uint32
}

// newMinute returns one for so many kinds, which begins now.
func newMinute(kinds int, now time.Duration) *minute {
	m := &minute{counts: make([]atomic.Uint32, kinds)}
	for i := range m.past {
		m.past[i] = make([]uint32, kinds)
	}
	m.turned.Store(int64(now / tickEvery))
	return m
}

// add counts one of a kind. It waits for nobody: if another is turning, what is
// counted meanwhile belongs to the tick before.
func (m *minute) add(kind int, now time.Duration) {
	if tick := int64(now / tickEvery); tick > m.turned.Load() && m.mu.TryLock() {
		m.turn(tick)
		m.mu.Unlock()
	}
	m.counts[kind].Add(1)
}

// turn keeps the counts for the beginnings of all ticks up to tick. In those
// that have passed without a call nothing was counted. It requires mu.
func (m *minute) turn(tick int64) {
	from := m.turned.Load() + 1
	for t := max(from, tick-minuteTicks); t <= tick; t++ {
		for i := range m.counts {
			m.past[t%(minuteTicks+1)][i] = m.counts[i].Load()
		}
	}
	m.turned.Store(max(tick, from-1))
}

// last returns how many there were of each kind in the last minute, and how long
// that was.
func (m *minute) last(now time.Duration) (counts []uint32, long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(int64(now / tickEvery))
	begin := max(0, m.turned.Load()-minuteTicks)
	counts = make([]uint32, len(m.counts))
	for i := range counts {
		counts[i] = m.counts[i].Load() - m.past[begin%(minuteTicks+1)][i]
	}
	return counts, now - time.Duration(begin)*tickEvery
}
