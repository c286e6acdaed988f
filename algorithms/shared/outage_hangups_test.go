// Calls that Redis executes and that have ended meanwhile: their clients have hung up,
// or their deadline has passed. What they took of a Concurrent limit comes back.

package shared

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// places are held for longer than any test waits.
var places = algorithms.Concurrent(100, 24*time.Hour)

// A visit is a request of a Concurrent limit: it takes a place, runs, and gives the
// place back. It reports whether it was admitted.
func visit(ctx context.Context, l algorithms.Limiter, fail algorithms.FailureMode) bool {
	c := []algorithms.Check{{Policy: "default", Key: "const=all", Limit: places, Cost: 1, Fail: fail}}
	if l.Allow(ctx, c) != nil || !c[0].Decision.Allowed {
		return false
	}
	c[0].Op = algorithms.Return
	_ = l.Allow(context.Background(), c) // the outcome is what the tests look at
	return true
}

// Once Redis answers again, no place is held for a call that has ended, however its
// reply was lost. The place of a request that runs on stays held.
func TestEndedCallsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	server := func(f func(*redistest.Server)) func(*redistest.Server, *redistest.Proxy) {
		return func(s *redistest.Server, _ *redistest.Proxy) { f(s) }
	}
	faults := map[string]func(*redistest.Server, *redistest.Proxy){
		"late replies": func(_ *redistest.Server, p *redistest.Proxy) { p.Set(redistest.Delay(200 * time.Millisecond)) },
		"lost replies": func(_ *redistest.Server, p *redistest.Proxy) { p.Set(redistest.Swallow()) },
		"cut replies":  func(_ *redistest.Server, p *redistest.Proxy) { p.Set(redistest.Cut()) },
		"a stall":      server((*redistest.Server).Stop),
	}
	for name, begin := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.StartProxy(t, s.Addr())
			var limiters, direct []*Limiter
			for _, prefix := range []string{"lone", "crowd"} {
				l := must(t, clientOf(t, p.Addr(), nil), &Options{Prefix: prefix, Logger: new(logRecords).logger()})
				limiters, direct = append(limiters, l), append(direct, newRedis(t, s.Client(), &Options{Prefix: prefix}))
				redistest.Until(t, "Redis decides", func() bool {
					return take(t, l, "const=all", places, 1).Source == algorithms.Shared
				})
			}
			begin(s, p)
			var visits sync.WaitGroup
			visits.Go(func() { visit(context.Background(), limiters[0], algorithms.FailLocal) })
			for i := range 40 {
				visits.Go(func() {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if i%2 == 1 { // its client hangs up
						time.AfterFunc(20*time.Millisecond, cancel)
					}
					visit(ctx, limiters[1], []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailClosed}[i/2%2])
				})
			}
			visits.Wait()
			if name == "a stall" {
				for _, l := range limiters {
					redistest.Until(t, "the client has given up", func() bool { return l.redis.underWay() == 0 })
				}
				s.Continue()
			}
			p.Set(redistest.Pass())
			redistest.Until(t, "only the places of the requests that run are held", func() bool {
				return used(t, direct[0], "const=all", places) == 1 && used(t, direct[1], "const=all", places) == 1
			})
		})
	}
}

// Clients that open requests and hang up, again and again, lock no other client out: the
// attack leaves no place held, and another client is served at least half of the time.
func TestHangUpsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	l := must(t, clientOf(t, p.Addr(), nil), &Options{Logger: new(logRecords).logger()})
	direct := newRedis(t, s.Client(), nil)
	var attack sync.WaitGroup
	var over atomic.Bool
	for range 50 {
		attack.Go(func() {
			for !over.Load() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Int64N(int64(2*defaultDeadline))))
				visit(ctx, l, algorithms.FailLocal)
				cancel()
			}
		})
	}
	served, asked := 0, 0
	for range 10 { // an overloaded Redis answers in time, and too late
		for _, fault := range []redistest.Fault{redistest.Pass(), redistest.Delay(2 * defaultDeadline)} {
			p.Set(fault)
			for range 5 {
				if asked++; visit(context.Background(), l, algorithms.FailLocal) {
					served++
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	over.Store(true)
	attack.Wait()
	p.Set(redistest.Pass())
	if 2*served < asked {
		t.Errorf("another client was served %d times of %d during the attack, want at least half", served, asked)
	}
	redistest.Until(t, "no place is held", func() bool { return used(t, direct, "const=all", places) == 0 })
}
