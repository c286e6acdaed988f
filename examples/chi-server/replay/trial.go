// Trials: the spooled decisions again, under other limits.

package replay

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A trial decides every record of a spool under other limits, each series alone.
type trial struct {
	limits  []algorithms.Limit // by series; the zero Limit leaves a series out
	minutes bool               // the worst minute is wanted, too
	tallies []tally            // by series
	clients []int              // denied keys, by series
	denied  []uint32           // denied requests, by key
}

// run runs trials, one on each of two cores: each takes as much memory as the keys that
// it may deny.
func (b *book) run(ctx context.Context, s *spool, trials ...*trial) error {
	errs := make([]error, len(trials))
	var running sync.WaitGroup
	cores := make(chan struct{}, 2)
	for i, t := range trials {
		cores <- struct{}{}
		running.Go(func() {
			defer func() { <-cores }()
			errs[i] = t.run(ctx, b, s)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (t *trial) run(ctx context.Context, b *book, s *spool) error {
	t.tallies, t.clients = make([]tally, len(b.series)), make([]int, len(b.series))
	t.denied = make([]uint32, b.keys.n)
	var now int64
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{
		MaxKeys: math.MaxInt32, Now: func() time.Time { return time.UnixMicro(now) },
	})
	safe := t.safe()
	var checks [1]algorithms.Check
	c := &checks[0]
	n := 0
	err := s.each(func(r record) error {
		if n++; n%(1<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k := b.keys.at(r.key)
		if k.pair <= safe[k.series] {
			if t.minutes {
				t.tallies[k.series].add(r.time, int64(r.cost), nil)
			}
			return nil
		}
		now = r.time
		*c = algorithms.Check{Policy: b.series[k.series].policy, Key: k.text, Limit: t.limits[k.series], Cost: int64(r.cost)}
		if err := memory.Allow(ctx, checks[:]); err != nil {
			return err
		}
		t.tallies[k.series].add(now, c.Cost, &c.Decision)
		if !c.Decision.Allowed {
			if t.denied[r.key]++; t.denied[r.key] == 1 {
				t.clients[k.series]++
			}
		} else if r.returns && c.Decision.Receipt.Units() > 0 {
			c.Op = algorithms.Return
			return memory.Allow(ctx, checks[:])
		}
		return nil
	})
	return err
}

// safe returns, by series, how many units a key may want in two neighbouring windows so
// that the limit certainly denies none of its requests. Most keys want fewer, and need
// no decision.
func (t *trial) safe() []uint32 {
	safe := make([]uint32, len(t.limits))
	for i, l := range t.limits {
		if safe[i] = math.MaxUint32; l != (algorithms.Limit{}) {
			safe[i] = uint32(min(l.Burst(), l.Requests(), math.MaxUint32-1))
		}
	}
	return safe
}

// alternatives are the other algorithms.
var alternatives = []func(int64, time.Duration) algorithms.Limit{
	algorithms.TokenBucket, algorithms.LeakyBucket, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog, algorithms.FixedWindow,
}

// others returns the limit under all other algorithms. Buckets keep the burst. Nothing
// stands beside limits of the calendar, of concurrent requests, and of nobody.
func others(l algorithms.Limit) []algorithms.Limit {
	if !searchable(l) || l.Algorithm().Calendar() {
		return nil
	}
	var all []algorithms.Limit
	for _, limit := range alternatives {
		other := limit(l.Requests(), l.Window())
		if other.Algorithm().Continuous() && l.Algorithm().Continuous() {
			other = other.WithBurst(l.Burst())
		}
		if other.Algorithm() != l.Algorithm() {
			all = append(all, other)
		}
	}
	return all
}

// searchable reports whether another number of requests makes sense.
func searchable(l algorithms.Limit) bool {
	return l.Requests() > 0 && !l.Algorithm().Concurrent()
}
