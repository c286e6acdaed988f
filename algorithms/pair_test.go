// Pairs of takes in a Memory: many histories against a model, and tenants beside a hog.

package algorithms_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// In 100 000 histories, each request is charged to the plan if that has room, otherwise to the credits if these have, and
// otherwise to none. A Return goes back to where its request was charged.
func TestHistoriesOfCredits(t *testing.T) {
	t.Parallel()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: newClock().now})
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var left [2]int64
	for history := range 100_000 {
		plan, credits := algorithms.FixedWindow(1+random.Int64N(9), time.Hour), algorithms.TokenBucket(1+random.Int64N(9), time.Hour)
		left = [2]int64{plan.Burst(), credits.Burst()}
		var taken [][2]algorithms.Check
		for range 10 {
			key, cost := fmt.Sprint("usr=", history), [2]int64{random.Int64N(6), random.Int64N(6)}
			checks := []algorithms.Check{
				{Policy: "plan", Key: key, Limit: plan, Cost: cost[0]},
				{Policy: "credits", Key: key, Limit: credits, Cost: cost[1], Op: algorithms.TakeElse},
			}
			if err := limiter.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
			var want [2]int64
			fits := cost[0] <= left[0] || cost[1] <= left[1]
			switch {
			case cost[0] <= left[0]:
				want[0] = cost[0]
			case fits:
				want[1] = cost[1]
			}
			got := [2]int64{checks[0].Decision.Receipt.Units(), checks[1].Decision.Receipt.Units()}
			if got != want || algorithms.Allowed(checks) != fits {
				t.Fatalf("seed %d, history %d, %v left of plan and credits, cost %v: got %v charged and allowed %t, want %v and %t",
					seed, history, left, cost, got, algorithms.Allowed(checks), want, fits)
			}
			left[0], left[1] = left[0]-want[0], left[1]-want[1]
			if taken = append(taken, [2]algorithms.Check(checks)); random.IntN(3) > 0 {
				continue
			}
			i := random.IntN(len(taken))
			back := taken[i]
			taken = append(taken[:i], taken[i+1:]...)
			for j := range back {
				left[j] += back[j].Decision.Receipt.Units()
				back[j].Op = algorithms.Return
			}
			if err := limiter.Allow(context.Background(), back[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Nine modest tenants beside a hog are admitted within their shares, and together all get what the limit offers.
func TestSharesBesideAHog(t *testing.T) {
	t.Parallel()
	capacity, share := algorithms.TokenBucket(100, time.Second), algorithms.TokenBucket(10, time.Second)
	for _, hog := range []int{1_000, 5_000} {
		for _, each := range []int{5, 20} {
			clock := newClock()
			limiter := algorithms.NewMemory(&algorithms.MemoryOptions{Now: clock.now})
			random := rand.New(rand.NewPCG(1, 1))
			var asked, got [10]int
			rate := 9*each + hog
			for range 60 * rate {
				tenant := 0 // the hog
				if n := random.IntN(rate); n < 9*each {
					tenant = 1 + n%9
				}
				checks := []algorithms.Check{
					{Policy: "shares", Key: fmt.Sprint("usr=", tenant), Limit: share, Cost: 1},
					{Policy: "all", Key: "all", Limit: capacity, Cost: 1, Op: algorithms.TakeReserved},
				}
				if err := limiter.Allow(context.Background(), checks); err != nil {
					t.Fatal(err)
				}
				asked[tenant]++
				if algorithms.Allowed(checks) {
					got[tenant]++
				} else if checks[0].Decision.Allowed {
					t.Fatalf("%d each beside %d of a hog: a request of tenant %d is denied within its share", each, hog, tenant)
				}
				clock.add(time.Second / time.Duration(rate))
			}
			all := 0
			for tenant := range got {
				all += got[tenant]
				least := min(asked[tenant]*995/1000, 600*95/100)
				if tenant > 0 && got[tenant] < least {
					t.Errorf("%d each beside %d of a hog: got %d of tenant %d's %d requests admitted, want at least %d",
						each, hog, got[tenant], tenant, asked[tenant], least)
				}
			}
			if all < 6_000*97/100 || all > 6_000+2*100 {
				t.Errorf("%d each beside %d of a hog: got %d admitted in a minute, want nearly 6000 and at most 6200", each, hog, all)
			}
		}
	}
}

// If a full Memory has no room for the plan, the call is denied for a second: it must not be charged to the credits.
func TestPairWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, op := range []algorithms.Op{algorithms.TakeElse, algorithms.TakeReserved} {
		limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 1, Now: newClock().now})
		limit := algorithms.TokenBucket(5, time.Hour)
		for _, cost := range []int64{1, 5} { // a key that was denied is not evicted
			if _, err := algorithms.AllowN(context.Background(), limiter, "other", limit, cost); err != nil {
				t.Fatal(err)
			}
		}
		checks := []algorithms.Check{
			{Policy: "plan", Key: "new", Limit: limit, Cost: 1},
			{Policy: "default", Key: "other", Limit: limit, Cost: 1, Op: op},
		}
		if err := limiter.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		d := checks[1].Decision
		if algorithms.Allowed(checks) || d.RetryAfter != time.Second || d.Source != algorithms.Undecided || d.Receipt.Units() > 0 {
			t.Errorf("%v: got %+v, want it refused for a second", op, d)
		}
		if d, err := algorithms.AllowN(context.Background(), limiter, "other", limit, 0); err != nil || d.Remaining != 4 {
			t.Errorf("%v: got %+v, %v, want nothing charged", op, d, err)
		}
	}
}

// A full Memory does not evict the share of a tenant that is over it: the tenant would begin with a whole share.
func TestSharesThatDenyAreNotEvicted(t *testing.T) {
	t.Parallel()
	limiter := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 2, Now: newClock().now})
	share, capacity := algorithms.TokenBucket(1, time.Minute), algorithms.TokenBucket(100, time.Hour).WithBurst(1_000)
	for range 2 {
		checks := []algorithms.Check{
			{Policy: "default", Key: "share", Limit: share, Cost: 1},
			{Policy: "default", Key: "capacity", Limit: capacity, Cost: 50, Op: algorithms.TakeReserved},
		}
		if err := limiter.Allow(context.Background(), checks); err != nil || !algorithms.Allowed(checks) {
			t.Fatal(checks, err)
		}
	}
	if d, err := algorithms.Allow(context.Background(), limiter, "new", share); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if d, err := algorithms.AllowN(context.Background(), limiter, "share", share, 0); err != nil || d.Remaining != 0 {
		t.Errorf("got %+v, %v, want the share still used up", d, err)
	}
}
