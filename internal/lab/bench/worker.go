// The callers of a worker, a closed loop.
//
// A worker counts the units of each window. A decision says only how long it is until
// its window ends (ResetAfter), so the worker adds that to the time of the answer:
//
//	t = answered + ResetAfter
//
// Redis made the decision a little before the answer arrived, so t lies a little
// after the end of the window. If the answer took less than half a window, the
// nearest multiple of the window is that end. For example, with windows of 1 s, a
// decision at 7.3 s has a ResetAfter of 0.7 s. Its answer arrives at 7.32 s, so t is
// 8.02 s, the nearest multiple is 8 s, and the window is number 7, from 7 to 8 s.

package main

import (
	"context"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// A datedTake is a take that also returns the time until the key's window ends.
type datedTake func(ctx context.Context, key string) (allowed bool, reset time.Duration, err error)

var workerSetups = map[string]func(*stage, algorithms.Limit) (func() datedTake, error){
	"penstock": func(s *stage, limit algorithms.Limit) (func() datedTake, error) {
		limiter, err := newShared(s, s.client(), shared.Options{})
		return datedTakes(s, limiter, limit), err
	},
	"redis_rate": func(s *stage, limit algorithms.Limit) (func() datedTake, error) {
		l := redis_rate.NewLimiter(s.client())
		rate := redis_rate.Limit{Rate: int(limit.Requests()), Burst: int(limit.Requests()), Period: limit.Window()}
		return func() datedTake {
			return func(ctx context.Context, key string) (bool, time.Duration, error) {
				res, err := l.Allow(ctx, key, rate)
				if err != nil {
					return false, 0, err
				}
				return res.Allowed > 0, 0, nil
			}
		}, nil
	},
	"none": func(*stage, algorithms.Limit) (func() datedTake, error) {
		return func() datedTake {
			return func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil }
		}, nil
	},
}

func datedTakes(s *stage, limiter algorithms.Limiter, limit algorithms.Limit) func() datedTake {
	return func() datedTake {
		checks := []algorithms.Check{{Policy: "clients", Limit: limit, Cost: 1}}
		return func(ctx context.Context, key string) (bool, time.Duration, error) {
			checks[0].Key = key
			if err := limiter.Allow(ctx, checks); err != nil {
				return false, 0, err
			}
			if checks[0].Decision.Source != algorithms.Shared {
				s.astray.Add(1)
			}
			return checks[0].Decision.Allowed, checks[0].Decision.ResetAfter, nil
		}
	}
}

// loop runs all callers, each with a yield of its own. It returns the sum of
// the yields, and the first error.
func (j job) loop(takes func() datedTake, caller func(datedTake, *yield) error) (yield, error) {
	yields := make([]yield, j.Callers)
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for i := range yields {
		group.Go(func() {
			yields[i] = newYield()
			if err := caller(takes(), &yields[i]); err != nil {
				failure.CompareAndSwap(nil, &err)
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return yield{}, *err
	}
	return sumOf(yields), nil
}

// draw takes from random keys until the measured time has ended.
func (j job) draw(ctx context.Context, takes func() datedTake, window time.Duration) (yield, error) {
	keys, draws := plan{}.keyNames(j.Keys), j.draws()
	begin := time.Now().Add(j.WarmUp)
	end := begin.Add(j.Lasts)
	all, err := j.loop(takes, func(take datedTake, y *yield) error {
		for at := rand.IntN(len(draws)); ; at = (at + 1) % len(draws) {
			sent := time.Now()
			if !sent.Before(end) || ctx.Err() != nil {
				return ctx.Err()
			}
			key := int(draws[at])
			allowed, reset, err := take(ctx, keys[key])
			if err != nil {
				return err
			}
			answered := time.Now()
			if !sent.Before(begin) {
				y.Checks++
				y.Latencies.add(answered.Sub(sent))
			}
			y.AllChecks++
			s := slot{key, windowOf(answered.Add(reset), window)}
			if allowed {
				y.Admitted[s]++
			} else {
				y.Denied[s]++
			}
		}
	})
	all.Begin, all.End = begin, end
	return all, err
}

// windowOf returns the number of the window that ends nearest to t. Window 0 begins
// at the Unix epoch.
func windowOf(t time.Time, window time.Duration) int64 {
	return (t.UnixMicro()+window.Microseconds()/2)/window.Microseconds() - 1
}

// draws returns about a million random numbers of keys. They are drawn before the
// measurement, because a draw costs CPU.
func (j job) draws() []uint16 {
	cumulated := make([]float64, j.Keys)
	sum := 0.0
	for k := range cumulated {
		sum += math.Pow(float64(k+1), -j.Exponent)
		cumulated[k] = sum
	}
	draws := make([]uint16, 1<<20)
	for i := range draws {
		draws[i] = uint16(sort.SearchFloat64s(cumulated, rand.Float64()*sum))
	}
	return draws
}
