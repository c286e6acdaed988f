// Tests of shares while Redis is away.

package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/middleware"
)

// TestSharesInAnOutage: an instance of two divides its half of the capacity among the tenants. Afterwards Redis has charged
// each tenant's share, and the capacity, for what was admitted, and nothing else.
func TestSharesInAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	p := capacity()
	p.Limit = algorithms.TokenBucket(40, time.Hour)
	var limiters [2]*shared.Limiter
	var instances [2]*ratelimit.Middleware
	for i := range instances {
		limiters[i] = newShared(t, client, shared.Options{Instances: 2})
		instances[i] = newMiddleware(t, limiters[i], &ratelimit.Options{Logger: quiet}, p)
	}
	ask := func(m *ratelimit.Middleware, tenant string, times int) (admitted int) {
		for range times {
			v, err := m.Check(of(tenant, ""))
			if err != nil {
				t.Fatal(err)
			}
			if v.Allowed {
				admitted++
			}
		}
		return admitted
	}
	for _, m := range instances {
		ask(m, "quiet", 1)
		ask(m, "hog", 1)
	}
	if err := server.Client().Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	// The half has a burst of 20, and so each of two tenants has a share of 10.
	for _, want := range []struct {
		instance    int
		tenant      string
		asked, most int
	}{{0, "hog", 60, 20}, {0, "quiet", 8, 8}, {0, "hog", 60, 0}, {1, "quiet", 5, 5}} {
		if got := ask(instances[want.instance], want.tenant, want.asked); got != want.most {
			t.Errorf("instance %d: %s got %d of %d, want %d", want.instance, want.tenant, got, want.asked, want.most)
		}
	}
	server.Restart()
	reader, share := newShared(t, server.Client(), shared.Options{Views: shared.ViewsOff}), algorithms.TokenBucket(20, time.Hour)
	redistest.UntilEmpty(t, "Redis is charged for what was admitted", func() string {
		for _, l := range limiters { // calls make them look for Redis
			if err := l.Allow(t.Context(), []algorithms.Check{{Policy: "capacity", Key: "const=all", Limit: p.Limit}}); err != nil {
				return err.Error()
			}
		}
		for _, want := range []struct {
			policy, key string
			limit       algorithms.Limit
			used        int64
		}{
			{"capacity~share", "usr=quiet", share, 2 + 8 + 5}, {"capacity~share", "usr=hog", share, 2 + 10},
			{"capacity~share", "usr=other", share, 0}, {"capacity", "const=all", p.Limit, 4 + 20 + 8 + 5},
		} {
			checks := []algorithms.Check{{Policy: want.policy, Key: want.key, Limit: want.limit}}
			if err := reader.Allow(t.Context(), checks); err != nil {
				return err.Error()
			}
			unit := want.limit.Window() / time.Duration(want.limit.Requests())
			if used := int64((checks[0].Decision.ResetAfter + unit - 1) / unit); used != want.used {
				return fmt.Sprintf("%s %s: got %d units in use, want %d", want.policy, want.key, used, want.used)
			}
		}
		return ""
	})
}
