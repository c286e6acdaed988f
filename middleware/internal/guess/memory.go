package guess

import "sync/atomic"

const (
	sets = 1 << 12
	ways = 8 // one cache line
)

// A memory remembers the last 32 768 or so hashes, in 256 KB that the first one
// allocates. Requests with valid keys read it, so it has no lock. Additions that meet may
// lose a hash, which then only counts as new. The zero memory is empty.
type memory struct {
	table atomic.Pointer[[sets][ways]atomic.Uint64]
}

// set returns the places where a hash may be; nil if the memory is empty.
func (m *memory) set(hash uint64) *[ways]atomic.Uint64 {
	t := m.table.Load()
	if t == nil {
		return nil
	}
	return &t[hash%sets]
}

func (m *memory) has(hash uint64) bool {
	s := m.set(hash)
	if s == nil {
		return false
	}
	for i := range s {
		if s[i].Load() == hash {
			return true
		}
	}
	return false
}

// add remembers a hash in place of the oldest one of its set.
func (m *memory) add(hash uint64) {
	if m.has(hash) {
		return
	}
	if m.table.Load() == nil {
		m.table.CompareAndSwap(nil, new([sets][ways]atomic.Uint64))
	}
	s := m.set(hash)
	for i := ways - 1; i > 0; i-- {
		s[i].Store(s[i-1].Load())
	}
	s[0].Store(hash)
}

func (m *memory) remove(hash uint64) {
	s := m.set(hash)
	for i := 0; s != nil && i < ways; i++ {
		s[i].CompareAndSwap(hash, 0)
	}
}
