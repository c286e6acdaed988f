// The test that clients cannot add series.

package prommetrics_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A troubledLimiter may fail, and counts its failures in its Stats.
type troubledLimiter struct {
	countedLimiter
	trouble error
}

func (l *troubledLimiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if l.trouble != nil {
		l.stats.Redis.Errors[shared.Reason(l.trouble)]++
		return l.trouble
	}
	return l.Memory.Allow(ctx, checks)
}

// TestCardinality: the configuration alone decides how many series there are.
func TestCardinality(t *testing.T) {
	reg := prometheus.NewRegistry()
	candidate := algorithms.TokenBucket(1, time.Second)
	policy := ratelimit.Policy{
		Name: "p", Limit: hourly, Candidate: &candidate,
		Tiers: map[string]algorithms.Limit{"pro": algorithms.TokenBucket(2, time.Hour)},
		Key: keyfunc.FirstOf(tenant, keyfunc.Join(keyfunc.IP(nil),
			keyfunc.Custom("path", func(r *http.Request) (string, error) { return r.Method + r.URL.Path, nil }))),
	}
	limiter := &troubledLimiter{countedLimiter: countedLimiter{Memory: newMemory(t)}}
	limiter.stats.Shared, limiter.stats.Redis.Errors = true, map[string]uint64{shared.Reason(errors.New("any")): 0}
	limited := newMiddleware(t, limiter, newMetrics(t, reg), policy, byIP("ip", hourly))
	random := rand.New(rand.NewPCG(1, 2))
	send := func() {
		limiter.trouble = nil
		r := from(fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256)))
		r.Method, r.URL.Path = fmt.Sprintf("M%d", random.Uint32()), fmt.Sprintf("/%d", random.Uint64())
		switch random.IntN(5) {
		case 0:
			r.Header.Set("X-API-Key", fmt.Sprintf("u%d.tier%d", random.IntN(100), random.Uint64()))
		case 1:
			r.Header.Set("X-API-Key", fmt.Sprintf("u%d.pro", random.IntN(100)))
		case 2:
			r.Header.Set("X-API-Key", fmt.Sprint("guess.", random.Uint64()))
		case 3:
			limiter.trouble = fmt.Errorf("dial tcp 127.0.0.1:%d: %d", random.Uint32(), random.Uint64())
		}
		_, _ = limited.Check(r)
	}
	_, before := gather(t, reg)
	for range 100_000 {
		send()
	}
	values, after := gather(t, reg)
	if before != after {
		t.Errorf("got %d series before the first request, and %d after 100 000", before, after)
	}
	// Two policies, one of them with a tier, have twelve outcomes, and the other series of policy, source and limiter.
	if after > 110 {
		t.Errorf("got %d series, want at most 110: %v", after, values)
	}
	if got := values["ratelimit_unknown_tier_requests_total{policy=p}"]; got < 10_000 {
		t.Errorf("got %v requests with an unknown tier", got)
	}
}
