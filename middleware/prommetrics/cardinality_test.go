// The test that clients cannot add series.

package prommetrics_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

func tierOf(r *http.Request) string { return r.Header.Get("Tier") }

// TestCardinality: whatever clients send, the number of series is that of the configuration.
func TestCardinality(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	memory := newMemory(t)
	candidate := algorithms.TokenBucket(1, 1e9)
	policy := ratelimit.Policy{
		Name: "p", Limit: hourly, Tier: tierOf, Candidate: &candidate,
		Tiers: map[string]algorithms.Limit{"pro": algorithms.TokenBucket(2, 1e9*3600)},
		Key: keyfunc.FirstOf(
			keyfunc.APIKey("X-API-Key", []byte("a secret of the tests"), func(key string) bool { return key[0] == 'k' }),
			keyfunc.Join(keyfunc.IP(nil), keyfunc.Custom("path", func(r *http.Request) (string, error) { return r.Method + r.URL.Path, nil }))),
	}
	var trouble error
	failed := map[string]uint64{}
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if trouble != nil {
			return trouble
		}
		return memory.Allow(ctx, checks)
	})
	limited, err := ratelimit.New(limiter, &ratelimit.Options{Observer: m, Logger: quiet}, policy, byIP("ip", hourly))
	if err != nil {
		t.Fatal(err)
	}
	m.WatchOffenders(limited)
	counted := &countedLimiter{Memory: memory}
	counted.stats.Shared, counted.stats.Redis.Errors = true, failed
	if err := errors.Join(m.Watch("memory", memory), m.Watch("redis", counted)); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	send := func() {
		trouble = nil
		r := from(fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256)))
		r.Method, r.URL.Path = fmt.Sprintf("M%d", random.Uint32()), fmt.Sprintf("/%d", random.Uint64())
		switch random.IntN(5) {
		case 0:
			r.Header.Set("Tier", fmt.Sprint("tier", random.Uint64()))
		case 1:
			r.Header.Set("Tier", "pro")
		case 2:
			r.Header.Set("X-API-Key", fmt.Sprint("key", random.IntN(100)))
		case 3:
			r.Header.Set("X-API-Key", fmt.Sprint("guess", random.Uint64()))
		case 4:
			trouble = fmt.Errorf("dial tcp 127.0.0.1:%d: %d", random.Uint32(), random.Uint64())
			failed[shared.Reason(trouble)]++
		}
		_, _ = limited.Check(r)
	}
	for range 2_000 {
		send()
	}
	_, few := gather(t, reg)
	for range 98_000 {
		send()
	}
	values, many := gather(t, reg)
	if few != many {
		t.Errorf("got %d series after 2 000 requests, and %d after 100 000", few, many)
	}
	// 2 policies, one of them with a tier, 11 outcomes; and what each policy, source and limiter has.
	if many > 100 {
		t.Errorf("got %d series, want no more than 100: %v", many, values)
	}
	if got := values["ratelimit_distinct_keys{policy=p}"]; got < 85_000*0.5 {
		t.Errorf("got %v distinct keys", got)
	}
}
