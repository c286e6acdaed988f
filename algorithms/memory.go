package algorithms

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// Memory limits within this process. It holds its keys in shards, at most
// MaxKeys in all; keys that are full again are forgotten.
//
// A Memory is safe for concurrent use, and must be closed.
type Memory struct {
	clock   func() time.Time // nil: wall
	wall    *wallClock
	observe func(Event)
	seed    maphash.Seed
	shards  []shard // a power of two, at most 64

	close   sync.Once
	closing chan struct{}
	closed  chan struct{}
}

var _ Limiter = (*Memory)(nil)

// MemoryOptions tune a [Memory].
type MemoryOptions struct {
	// MaxKeys bounds the keys that are held; 0 means 1 000 000. Beyond it a
	// new key evicts one that has little to forget, but never one that was
	// denied within the last second, or random keys could free an exhausted
	// one. If there is nothing to evict, the new key is denied for a second,
	// and a Force of one is lost.
	//
	// Keys are spread over shards with bounds of their own, so eviction may
	// begin some per cent early.
	MaxKeys int

	// Now is the clock. It must be safe for concurrent use. Nil means that of
	// the system; a step of that is followed within about a second, until the
	// Memory is closed.
	Now func() time.Time

	// Observe, if not nil, is told what happens. It may be called while
	// locks are held: it must be quick, and not use the limiter.
	Observe func(Event)
}

const (
	defaultMaxKeys = 1_000_000
	maxShards      = 64
	minShardKeys   = 1024 // fewer keys than this per shard are not worth one

	sweepEvery = time.Second
	// refusedFor is the wait of a key that Memory has no room for.
	refusedFor = time.Second
)

// NewMemory returns a limiter that counts in this process; nil options mean
// the defaults. It starts one goroutine, which Close ends.
func NewMemory(o *MemoryOptions) (*Memory, error) {
	if o == nil {
		o = &MemoryOptions{}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := &Memory{
		clock: o.Now, wall: newWallClock(), observe: o.Observe, seed: maphash.MakeSeed(),
		closing: make(chan struct{}), closed: make(chan struct{}),
	}
	maxKeys := o.MaxKeys
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	n := 1
	for n < maxShards && maxKeys/(2*n) >= minShardKeys {
		n *= 2
	}
	m.shards = make([]shard, n)
	for i := range m.shards {
		m.shards[i].limit = maxKeys / n
	}
	go m.sweep()
	return m, nil
}

func (o *MemoryOptions) validate() error {
	if o.MaxKeys < 0 {
		return fmt.Errorf("algorithms: MaxKeys is %d; it must not be negative", o.MaxKeys)
	}
	return nil
}

// Allow implements [Limiter]. It returns no errors but those that wrap
// [ErrInvalid], the context's if that has ended already, and one of a clock that
// is before 1970 or after 2252.
func (m *Memory) Allow(ctx context.Context, checks []Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	now := m.now()
	if !representable(now) {
		return errClock(now)
	}
	if c := &checks[0]; len(checks) == 1 && c.Op == Take && c.Limit.algorithm == algorithmTokenBucket && c.validate() == nil {
		m.take(c, now)
		return nil
	}
	return m.call(checks, now)
}

// now returns the instant in µs.
func (m *Memory) now() int64 {
	if m.clock != nil {
		return m.clock().UnixMicro()
	}
	return m.wall.now()
}

// MemoryStats are counts since the start, but for Keys.
type MemoryStats struct {
	Keys    int    // that are held now
	Expired uint64 // that were forgotten because they were full again
	Evicted uint64 // that were forgotten to make room
	Refused uint64 // new keys that there was no room for
}

// Stats returns what has happened so far.
func (m *Memory) Stats() MemoryStats {
	var sum MemoryStats
	for i := range m.shards {
		sh := &m.shards[i]
		sh.mu.Lock()
		sum.Keys += sh.records.keys
		sum.Expired += sh.stats.Expired
		sum.Evicted += sh.stats.Evicted
		sum.Refused += sh.stats.Refused
		sh.mu.Unlock()
	}
	return sum
}

// Close ends the goroutine that forgets expired keys, and waits for it. The
// limiter goes on deciding. Close may be called more than once.
func (m *Memory) Close() error {
	m.close.Do(func() { close(m.closing) })
	<-m.closed
	return nil
}

// sweep forgets keys that are full again, so that they go without traffic.
func (m *Memory) sweep() {
	defer close(m.closed)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.closing:
			return
		case <-tick.C:
			m.wall.set(time.Now())
			for i := range m.shards {
				m.shards[i].sweep(m.now)
			}
		}
	}
}
