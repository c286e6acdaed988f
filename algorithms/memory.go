// Memory: a Limiter that counts within this process.

package algorithms

import (
	"context"
	"hash/maphash"
	"time"
)

// Memory limits within this process. It is safe for concurrent use, owns no
// goroutine and needs no Close.
type Memory struct {
	clock  func() time.Time // nil: wall
	wall   *wallClock
	seed   maphash.Seed
	shards []shard // a power of two, at most 64
}

var _ Limiter = (*Memory)(nil)

// MemoryOptions tune a [Memory].
type MemoryOptions struct {
	// MaxKeys bounds the keys; 0 or less means 1 000 000. Beyond it, or some per cent earlier, a new key evicts the
	// key that is full soonest among a few, but none that was denied within the last second. If it can evict none, it
	// is denied for a second.
	MaxKeys int

	// Now is the clock; nil means the system's. It must be safe for concurrent
	// use, and must neither call the Memory nor panic.
	Now func() time.Time
}

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64
	minShardKeys   = 1024 // fewer keys than this per shard are not worth one
)

// NewMemory returns a Memory. Nil options mean the defaults.
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

// Allow implements [Limiter]. Errors are the context's, or wrap [ErrInvalid].
func (m *Memory) Allow(ctx context.Context, checks []Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	if c := &checks[0]; len(checks) == 1 && c.Op == Take && c.valid() && c.Limit.step.TakesLone() {
		return m.take(c.Policy, c.Key, &c.Limit.step, c.units(), &c.Decision)
	}
	if len(checks) > 1 && len(checks) <= maxTakes && m.takes(checks) {
		return nil
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

// Stats returns the counts so far.
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
