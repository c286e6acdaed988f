// Processes that hold units of one limit of concurrent requests, and die.

package shared

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// The limit of several processes. Each process leaves one unit behind, as if it
// had died.
var held = algorithms.Concurrent(7, time.Hour)

const holders = 4 // processes

func holdCheck() algorithms.Check {
	return algorithms.Check{Policy: "p", Key: "usr=1", Limit: held, Cost: 1}
}

// newHolder returns a limiter for which a slow machine is no outage.
func newHolder(t *testing.T, client redis.UniversalClient) *Limiter {
	t.Helper()
	return must(t, client, &Options{Deadline: time.Minute})
}

// TestHoldProcess does the job of the test below, which is the address of Redis.
// A counter in Redis is one for each unit that runs, and so never above the limit.
func TestHoldProcess(t *testing.T) {
	redistest.RunJob(t, func(_ *redistest.Parent, addr string) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		s := newHolder(t, client)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					runOne(t, client, s)
				}
			})
		}
		wg.Wait()
		redistest.Until(t, "a unit is held, which is left behind", func() bool {
			checks := []algorithms.Check{holdCheck()}
			if err := s.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
			return algorithms.Allowed(checks)
		})
	})
}

// runOne runs a request, if it may.
func runOne(t *testing.T, client *redis.Client, s *Limiter) {
	ctx := context.Background()
	checks := []algorithms.Check{holdCheck()}
	checks[0].Cost = 1 + rand.Int64N(2)
	if err := s.Allow(ctx, checks); err != nil {
		t.Error(err)
		return
	}
	if !algorithms.Allowed(checks) {
		time.Sleep(time.Millisecond)
		return
	}
	if running := client.IncrBy(ctx, "running", checks[0].Cost).Val(); running < 1 || running > held.Requests() {
		t.Errorf("got %d units running, want at most %d", running, held.Requests())
	}
	client.Incr(ctx, "admitted")
	time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
	for _, op := range []algorithms.Op{algorithms.Renew, algorithms.Return, algorithms.Return} {
		if op == algorithms.Return {
			client.DecrBy(ctx, "running", checks[0].Decision.Receipt.Units())
		}
		again := checks[0]
		checks[0].Op = op
		if err := s.Allow(ctx, checks); err != nil {
			t.Error(err)
		}
		if op == algorithms.Return { // once more, with the receipt that was returned
			again.Op = op
			if err := s.Allow(ctx, []algorithms.Check{again}); err != nil {
				t.Error(err)
			}
		}
	}
}

// Takes, renewals and returns of many processes may meet in any order. No more
// requests run than the limit, and in the end only units of dead processes are
// held.
func TestProcessesTogetherRunNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	var children []*redistest.Child
	for range holders {
		children = append(children, redistest.Rerun(t, "TestHoldProcess", client.Options().Addr))
	}
	for _, child := range children {
		if err := child.Close(); err != nil {
			t.Errorf("a process: %v", err)
		}
	}
	d, err := algorithms.AllowN(t.Context(), newRedis(t, client, nil), "usr=other", held, 0)
	if err != nil || d.Remaining != held.Requests() {
		t.Fatalf("another key: got %+v, %v", d, err)
	}
	checks := []algorithms.Check{holdCheck()}
	checks[0].Cost = 0
	if err := newHolder(t, client).Allow(t.Context(), checks); err != nil {
		t.Fatal(err)
	}
	if got := checks[0].Decision.Remaining; got != held.Requests()-holders {
		t.Errorf("got %d remaining, want all except the units that %d processes left behind", got, holders)
	}
	admitted, err := client.Get(t.Context(), "admitted").Int()
	if err != nil || admitted < 100 {
		t.Errorf("got %d admitted, %v, want many", admitted, err)
	}
	t.Logf("%d of %d admitted", admitted, holders*8*100)
}
