// Tests of New, and of the metrics of requests.

package prommetrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

func TestNewWithoutRegisterer(t *testing.T) {
	if _, err := prommetrics.New(nil, nil); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("got %v, want an error with the prefix ratelimit", err)
	}
}

// TestNewAgain: one registry has one set of metrics, however often New is called.
func TestNewAgain(t *testing.T) {
	reg := prometheus.NewRegistry()
	first, again := newMetrics(t, reg), newMetrics(t, reg)
	if first != again {
		t.Error("got other metrics, want the same")
	}
	if newMetrics(t, prometheus.NewRegistry()) == first {
		t.Error("got the metrics of another registry")
	}
	both := prometheus.NewRegistry()
	a := prometheus.WrapRegistererWith(prometheus.Labels{"program": "a"}, both)
	b := prometheus.WrapRegistererWith(prometheus.Labels{"program": "b"}, both)
	ofA, ofB := newMetrics(t, a), newMetrics(t, b)
	if again := newMetrics(t, a); ofA == ofB || ofA != again {
		t.Error("got other metrics, want one set for each wrapper")
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "ratelimit_instances", Help: "Instances of another program."}))
	if _, err := prommetrics.New(taken, nil); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), "ratelimit_instances") {
		t.Errorf("got %v, want that the name is taken", err)
	}
	if values, _ := gather(t, taken); len(values) != 1 {
		t.Errorf("got %v, want only the metric of before", values)
	}
}

// TestTopOffenderOfSeveralMiddlewares: policies of one name have one series, with the largest ratio and the tier of its key.
func TestTopOffenderOfSeveralMiddlewares(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, memory := newMetrics(t, reg), newMemory(t)
	policy := ratelimit.Policy{Name: "p", Key: tenant, Limit: hourly, Tiers: map[string]algorithms.Limit{"pro": algorithms.TokenBucket(1, time.Hour)}}
	denies := newMiddleware(t, memory, m, policy)
	newMiddleware(t, memory, m, policy) // denies nobody
	for range 3 {
		_, _ = denies.Check(withKey("192.0.2.1", "paid.pro"))
	}
	values, _ := gather(t, reg)
	if got := labels(values, "ratelimit_top_offender_denial_ratio", "tier"); len(got) != 1 || values["ratelimit_top_offender_denial_ratio{policy=p,tier=pro}"] != 1 {
		t.Errorf("got the ratio of the tiers %v, want one series, of pro", got)
	}
}

// TestRequests: metrics count the requests of several Middlewares by policy, tier and outcome.
func TestRequests(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, memory := newMetrics(t, reg), newMemory(t)
	candidate := algorithms.Nobody()
	tried := byIP("q", hourly)
	tried.Candidate = &candidate
	shadow := byIP("r", algorithms.Nobody())
	shadow.Shadow = true
	tiered := newMiddleware(t, memory, m, ratelimit.Policy{
		Name: "p", Key: tenant, Limit: algorithms.TokenBucket(3, time.Hour),
		Tiers: map[string]algorithms.Limit{"pro": algorithms.TokenBucket(100, time.Hour)},
	})
	two := newMiddleware(t, memory, m, tried, shadow)
	for range 5 {
		_, _ = tiered.Check(withKey("192.0.2.1", "free"))
	}
	for _, key := range []string{"paid.pro", "odd.one", "guess.1", "no token68"} { // the last two are key errors
		_, _ = tiered.Check(withKey("192.0.2.2", key))
	}
	_, _ = tiered.Check(from("192.0.2.3")) // and so is a missing key
	_, _ = two.Check(from("192.0.2.1"))
	m.Observe(context.Background(), ratelimit.Event{
		Kind: ratelimit.Abandoned, Verdict: ratelimit.Verdict{Policies: []ratelimit.PolicyVerdict{{Name: "q"}, {Name: "r"}}},
	})
	m.Observe(context.Background(), ratelimit.Event{Kind: ratelimit.Banned, Policy: "q", Elapsed: time.Hour})

	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_decisions_total{result=allowed}":                                     6,
		"ratelimit_decisions_total{result=denied}":                                      2,
		"ratelimit_decisions_total{result=refused}":                                     3,
		"ratelimit_near_limit_total{policy=p,tier=}":                                    1,
		"ratelimit_near_limit_total{policy=p,tier=pro}":                                 0,
		"ratelimit_denied_keys{policy=p}":                                               1,
		"ratelimit_denied_keys{policy=q}":                                               0,
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=}":                      4,
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=pro}":                   1,
		"ratelimit_requests_total{outcome=denied,policy=p,tier=}":                       2,
		"ratelimit_requests_total{outcome=denied,policy=p,tier=pro}":                    0,
		"ratelimit_requests_total{outcome=key_error,policy=p,tier=}":                    3,
		"ratelimit_requests_total{outcome=shadow_denied,policy=r,tier=}":                1,
		"ratelimit_abandoned_requests_total{}":                                          1,
		"ratelimit_bans_total{policy=q}":                                                1,
		"ratelimit_unknown_tier_requests_total{policy=p}":                               1,
		"ratelimit_candidate_divergences_total{candidate=denied,live=allowed,policy=q}": 1,
		"ratelimit_candidate_divergences_total{candidate=allowed,live=denied,policy=q}": 0,
		"ratelimit_top_offender_denial_ratio{policy=p,tier=}":                           1,
		"ratelimit_top_offender_denial_ratio{policy=r,tier=}":                           1,
		"ratelimit_top_offender_denial_ratio{policy=q,tier=}":                           0,
	})
}

// TestBusiestSecond: of the seconds of the last minute, the one with most requests counts, and leaves after a minute.
func TestBusiestSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMiddleware(t, newMemory(t), newMetrics(t, reg), byIP("p", algorithms.TokenBucket(2, time.Hour)))
		for _, second := range []struct {
			requests          int
			offered, admitted float64
		}{{3, 3, 2}, {1, 3, 2}, {0, 3, 2}} {
			for range second.requests {
				_, _ = m.Check(from("192.0.2.1"))
			}
			values, _ := gather(t, reg)
			wants(t, values, map[string]float64{
				"ratelimit_busiest_second_requests{seen=offered}":  second.offered,
				"ratelimit_busiest_second_requests{seen=admitted}": second.admitted,
			})
			time.Sleep(time.Second)
		}
		time.Sleep(58 * time.Second)
		values, _ := gather(t, reg)
		wants(t, values, map[string]float64{"ratelimit_busiest_second_requests{seen=offered}": 1, "ratelimit_busiest_second_requests{seen=admitted}": 0})
	})
}

// A request that comes while Prometheus asks is never admitted without having been offered.
func TestBusiestSecondOffersFirst(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMiddleware(t, newMemory(t), newMetrics(t, reg), byIP("p", algorithms.TokenBucket(1_000_000_000, time.Hour)))
	ctx, stop := context.WithCancel(t.Context())
	var client sync.WaitGroup
	defer client.Wait()
	defer stop()
	client.Go(func() {
		for ctx.Err() == nil {
			_, _ = m.Check(from("192.0.2.1"))
		}
	})
	for range 300 {
		values, _ := gather(t, reg)
		offered, admitted := values["ratelimit_busiest_second_requests{seen=offered}"], values["ratelimit_busiest_second_requests{seen=admitted}"]
		if admitted > offered {
			t.Fatalf("got %v admitted of %v offered", admitted, offered)
		}
	}
}

// TestSettlements: a settlement is made, failed or dropped, and a dropped one has no delay.
func TestSettlements(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	for err, n := range map[error]int{nil: 3, errors.New("down"): 2, fmt.Errorf("too many: %w", ratelimit.ErrNotSettled): 1} {
		for range n {
			m.Observe(context.Background(), ratelimit.Event{Kind: ratelimit.Settled, Policy: "p", Err: err})
		}
	}
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_settlements_total{result=made}":    3,
		"ratelimit_settlements_total{result=failed}":  2,
		"ratelimit_settlements_total{result=dropped}": 1,
		"ratelimit_settlement_lag_seconds{}":          5,
	})
}
