// Large logs. Redis and Memory read their entries in different orders.

package shared

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Redis reads the entries of a large log of different costs from the nearer end,
// and Memory reads them in order. Both know when any cost fits.
func TestLargeLogTwins(t *testing.T) {
	t.Parallel()
	now := int64(1_763_729_430_000_000)
	clock := func() time.Time { return time.UnixMicro(now) }
	inRedis := newRedis(t, redistest.Start(t).Client(), &Options{Now: clock})
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{Now: limitertest.ExceptForSweeps(clock)})
	limit := algorithms.SlidingWindowLog(1_000, time.Minute)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for left := limit.Burst(); left > 0; {
		cost := min(left, 1+r.Int64N(1+r.Int64N(4)))
		take(t, inRedis, "usr=1", limit, cost)
		take(t, memory, "usr=1", limit, cost)
		left -= cost
		now += 1 + r.Int64N(20_000)
	}
	for cost := int64(1); cost <= limit.Burst(); cost++ {
		g, w := take(t, inRedis, "usr=1", limit, cost), take(t, memory, "usr=1", limit, cost)
		if g.Allowed || w.Allowed || g.RetryAfter != w.RetryAfter || g.UnitAfter != w.UnitAfter || g.RetryAfter <= 0 {
			t.Fatalf("seed %d, cost %d: got %+v, want %+v, both denied", seed, cost, g, w)
		}
	}
}

// After a step back of the clock the entries count from the present, so the key
// must live for a window from then on.
func TestLogRepairsExpire(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1_763_729_430_000_000)
	client := redistest.Start(t).Client()
	r := newRedis(t, client, &Options{Now: func() time.Time { return now }})
	limit := algorithms.SlidingWindowLog(10, 3*time.Hour)
	take(t, r, "usr=1", limit, 10)
	key := r.StoredKey(checksFor(limit, "usr=1")[0])
	if err := client.PExpire(t.Context(), key, 2*time.Hour).Err(); err != nil { // as after an hour
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	d := take(t, r, "usr=1", limit, 1)
	if ttl := client.PTTL(t.Context(), key).Val(); d.Allowed || ttl < d.ResetAfter-time.Minute || ttl < 2*time.Hour+30*time.Minute {
		t.Errorf("got %+v and a TTL of %v, want the key to live as long as its entries", d, ttl)
	}
}
