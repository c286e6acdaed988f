// Memory: a Limiter that counts within this process.

package algorithms

import (
	"context"
	"hash/maphash"
	"time"
)

// Memory limits within this process. It holds its keys in shards, at most
// MaxKeys in all.
//
// A Memory owns no goroutine and needs no Close: calls forget keys that are full
// again, a few at a time. A Memory that receives no calls forgets nothing. The
// room of forgotten keys serves new keys, and is freed with the Memory.
//
// A Memory is safe for concurrent use.
type Memory struct {
	clock  func() time.Time // nil: wall
	wall   *wallClock
	seed   maphash.Seed
	shards []shard // a power of two, at most 64
}

var _ Limiter = (*Memory)(nil)

// MemoryOptions tune a [Memory].
type MemoryOptions struct {
	// MaxKeys bounds the keys that are held; 0 or less means 1 000 000. Beyond
	// it a new key evicts one that has little to forget, but never one that was
	// denied within the last second, or random keys could free an exhausted
	// one. If there is nothing to evict, the new key is denied for a second,
	// and a Force of one is lost.
	//
	// Keys are spread over shards with bounds of their own, so eviction may
	// begin some per cent early.
	MaxKeys int

	// Now is the clock. It must be safe for concurrent use. It must neither call
	// the Memory nor panic, because it runs under a lock. Nil means the clock of the
	// system; a call follows a step of that clock within a second.
	Now func() time.Time
}

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64
	minShardKeys   = 1024 // fewer keys than this per shard are not worth one
)

// NewMemory returns a limiter that counts in this process; nil options mean the
// defaults.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = &MemoryOptions{}
	}
	maxKeys := o.MaxKeys
	if maxKeys <= 0 {
		maxKeys = defaultMaxKeys
	}
	n := 1
	for n < maxShards && maxKeys/(2*n) >= minShardKeys {
		n *= 2
	}
	m := &Memory{clock: o.Now, wall: newWallClock(), seed: maphash.MakeSeed(), shards: make([]shard, n)}
	for i := range m.shards {
		m.shards[i].limit = maxKeys / n
	}
	return m
}

// Allow implements [Limiter]. It returns the context's error if that has ended
// already, and otherwise only errors that wrap [ErrInvalid]: also where the
// clock is before 1970 or after 2252, or is the zero time.
func (m *Memory) Allow(ctx context.Context, checks []Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	if c := &checks[0]; len(checks) == 1 && c.Op == Take && c.valid() && c.Limit.step.TakesLone() {
		return m.take(c)
	}
	return m.call(checks)
}

// now returns the instant in µs.
func (m *Memory) now() int64 {
	if m.clock != nil {
		return m.clock().UnixMicro()
	}
	return m.wall.now()
}

// Stats returns what has happened so far.
func (m *Memory) Stats() (s Stats) {
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		s.Memory.Keys += sh.records.keys
		s.Memory.Expired += sh.expired
		s.Memory.Evicted += sh.evicted
		s.Memory.Refused += sh.refused
		sh.mu.Unlock()
	}
	return s
}
