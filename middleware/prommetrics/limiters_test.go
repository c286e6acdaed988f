// Tests of the Middlewares and limiters that metrics watch, and of the Stats of limiters.

package prommetrics_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// labels returns the values of a label in the series of a metric, sorted.
func labels(values map[string]float64, metric, label string) []string {
	var found []string
	for series := range values {
		rest, ok := strings.CutPrefix(series, metric+"{")
		if _, after, has := strings.Cut(rest, label+"="); ok && has {
			value, _, _ := strings.Cut(strings.TrimSuffix(after, "}"), ",")
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestRegistration: series exist from New on, and the gauges of a policy and a limiter end with their Middlewares.
func TestRegistration(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, memory := newMetrics(t, reg), newMemory(t)
	tiered := byIP("a", hourly)
	tiered.Key, tiered.Tiers = tenant, map[string]algorithms.Limit{"pro": hourly}
	tiered.Candidate, tiered.Ban = &hourly, &ratelimit.Ban{Denials: 10, Within: time.Minute, For: time.Hour}
	one := newMiddleware(t, memory, m, tiered, byIP("b", hourly))
	two := newMiddleware(t, memory, m, byIP("b", hourly))
	gauges := func(policies, limiters string) map[string]float64 {
		t.Helper()
		values, _ := gather(t, reg)
		if got := fmt.Sprint(labels(values, "ratelimit_top_offender_denial_ratio", "policy")); got != policies {
			t.Errorf("got policies %s, want %s", got, policies)
		}
		if got := fmt.Sprint(labels(values, "ratelimit_memory_keys", "limiter")); got != limiters {
			t.Errorf("got limiters %s, want %s", got, limiters)
		}
		return values
	}
	values := gauges("[a b]", "[memory]")
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=denied,policy=a,tier=}":                       0,
		"ratelimit_requests_total{outcome=denied,policy=a,tier=pro}":                    0,
		"ratelimit_requests_total{outcome=banned,policy=b,tier=}":                       0,
		"ratelimit_near_limit_total{policy=a,tier=pro}":                                 0,
		"ratelimit_decisions_total{result=refused}":                                     0,
		"ratelimit_findings{code=PS118}":                                                0,
		"ratelimit_unknown_tier_requests_total{policy=a}":                               0,
		"ratelimit_abandoned_requests_total{}":                                          0,
		"ratelimit_bans_total{policy=a}":                                                0,
		"ratelimit_settlements_total{result=dropped}":                                   0,
		"ratelimit_settlement_lag_seconds{}":                                            0,
		"ratelimit_candidate_divergences_total{candidate=denied,live=allowed,policy=a}": 0,
		"ratelimit_decision_duration_seconds{source=undecided}":                         0,
	})
	_, _ = one.Check(withKey("192.0.2.1", "free"))
	if err := one.Update(byIP("c", hourly), byIP("b", hourly)); err != nil {
		t.Fatal(err)
	}
	values = gauges("[b c]", "[memory]")
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=allowed,policy=a,tier=}": 1,
		"ratelimit_requests_total{outcome=allowed,policy=c,tier=}": 0,
	})
	for _, tt := range []struct {
		closed             *ratelimit.Middleware
		policies, limiters string
	}{{one, "[b]", "[memory]"}, {two, "[]", "[]"}} {
		if err := tt.closed.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		gauges(tt.policies, tt.limiters)
	}
}

// uncomparable is a limiter whose values panic when they are compared.
type uncomparable struct {
	algorithms.Limiter
	_ []int
}

func (uncomparable) Stats() algorithms.Stats { return algorithms.Stats{} }

// TestLimiters: each limiter has one label, whichever Middlewares and wrappers lead to it.
func TestLimiters(t *testing.T) {
	memory, odd := newMemory(t), limiterFunc(newMemory(t).Allow)
	for _, tt := range []struct {
		name     string
		limiters []algorithms.Limiter
		want     string
	}{
		{"shared", []algorithms.Limiter{memory, memory}, "[memory]"},
		{"two", []algorithms.Limiter{memory, newMemory(t), newMemory(t)}, "[memory memory-2 memory-3]"},
		{"wrapped", []algorithms.Limiter{wrapper{memory}, memory, wrapper{wrapper{memory}}}, "[memory]"},
		{"a wrapper around nothing", []algorithms.Limiter{wrapper{odd}}, "[]"},
		{"without Stats", []algorithms.Limiter{odd, memory}, "[memory]"},
		{"uncomparable", []algorithms.Limiter{uncomparable{Limiter: memory}, uncomparable{Limiter: memory}}, "[memory memory-2]"},
	} {
		reg := prometheus.NewRegistry()
		m := newMetrics(t, reg)
		for i, l := range tt.limiters {
			limited := newMiddleware(t, l, m, byIP(fmt.Sprint("p", i), hourly))
			if err := limited.Update(byIP(fmt.Sprint("p", i), hourly)); err != nil { // registers again
				t.Fatal(err)
			}
		}
		values, _ := gather(t, reg)
		if got := fmt.Sprint(labels(values, "ratelimit_memory_keys", "limiter")); got != tt.want {
			t.Errorf("%s: got limiters %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestLabelStays: a limiter keeps its label when another limiter of the same name goes.
func TestLabelStays(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	one := named(t, "l", newMemory(t), m, byIP("p", hourly))
	named(t, "l", newMemory(t), m, byIP("q", hourly))
	if err := one.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	named(t, "l-2", newMemory(t), m, byIP("r", hourly))
	values, _ := gather(t, reg)
	if got := fmt.Sprint(labels(values, "ratelimit_memory_keys", "limiter")); got != "[l-2 l-2-2]" {
		t.Errorf("got limiters %s, want l-2 and l-2-2", got)
	}
}

// TestInvalidUTF8: a label must be UTF-8, and Prometheus panics otherwise.
func TestInvalidUTF8(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, p := newMetrics(t, reg), byIP("p", hourly)
	p.Key, p.Tiers = tenant, map[string]algorithms.Limit{"gold\xff": hourly}
	named(t, "l\xff", newMemory(t), m, p)
	m.Observe(context.Background(), ratelimit.Event{
		Kind: ratelimit.Decided, Verdict: ratelimit.Verdict{Policies: []ratelimit.PolicyVerdict{{Name: "p", Tier: "gold\xff"}}},
	})
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_requests_total{outcome=allowed,policy=p,tier=gold\uFFFD}": 1,
		"ratelimit_memory_keys{limiter=l\uFFFD}":                             0,
	})
}

// TestFigures: each figure of a shared limiter's Stats has a metric.
func TestFigures(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	l := &countedLimiter{Memory: newMemory(t)}
	l.stats.Shared, l.stats.Fallback.Open, l.stats.Fallback.Unknown = true, 2, 30
	l.stats.Redis.Errors = map[string]uint64{"timeout": 1, "configuration": 0}
	l.stats.Redis.Checks, l.stats.Redis.Scripts, l.stats.Redis.ScriptLoads = 2, 3, 4
	l.stats.Redis.Missing, l.stats.Fallback.ReturnsLost = 5, 6
	l.stats.Fallback.Returns, l.stats.Fallback.Returned = 31, 32
	l.stats.Redis.Batches[0], l.stats.Redis.Batches[8], l.stats.Redis.Batched = 7, 1, 300
	l.stats.Fallback.Trips, l.stats.Fallback.Instances = 9, 10
	l.stats.Fallback.Local, l.stats.Fallback.Passed, l.stats.Fallback.Refused = 11, 12, 13
	l.stats.Fallback.Owed, l.stats.Fallback.HandedBack, l.stats.Fallback.Lost = 14, 15, 16
	l.stats.Views.Denied, l.stats.Views.Keys = 17, 18
	ahead := &l.stats.Ahead
	ahead.Admitted, ahead.Near, ahead.Allowance, ahead.Census, ahead.Busy, ahead.Unknown, ahead.Trouble = 40, 41, 42, 43, 44, 45, 46
	ahead.Overdrawn, ahead.Unacknowledged = 47, 48
	l.stats.Memory.Keys, l.stats.Memory.Expired, l.stats.Memory.Evicted, l.stats.Memory.Refused = 26, 27, 28, 29
	l.stats.Redis.Excused, l.stats.Redis.Findings = 33, map[string]bool{"PS201": true, "PS202": false}
	trips := &l.stats.Redis.RoundTrips
	trips.Count, trips.Sum, trips.Within = 34, 2*time.Second, map[time.Duration]uint64{time.Millisecond: 30, time.Second: 33}
	named(t, "l", l, m, byIP("p", hourly))
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_redis_excused_round_trips_total{limiter=l}":         33,
		"ratelimit_redis_round_trip_seconds{limiter=l}":                34,
		"ratelimit_findings{code=PS201}":                               1,
		"ratelimit_findings{code=PS202}":                               0,
		"ratelimit_redis_errors_total{limiter=l,reason=timeout}":       1,
		"ratelimit_redis_errors_total{limiter=l,reason=configuration}": 0,
		"ratelimit_redis_checks_total{limiter=l}":                      2,
		"ratelimit_redis_scripts_total{limiter=l}":                     3,
		"ratelimit_redis_script_loads_total{limiter=l}":                4,
		"ratelimit_redis_missing_states_total{limiter=l}":              5,
		"ratelimit_fallback_lost_returns_total{limiter=l}":             6,
		"ratelimit_fallback_kept_returns{limiter=l}":                   31,
		"ratelimit_fallback_late_returns_total{limiter=l}":             32,
		"ratelimit_redis_batch_checks{limiter=l}":                      8,
		"ratelimit_breaker_open{limiter=l}":                            2,
		"ratelimit_breaker_trips_total{limiter=l}":                     9,
		"ratelimit_instances{limiter=l}":                               10,
		"ratelimit_fallback_local_checks_total{limiter=l}":             11,
		"ratelimit_fallback_passed_checks_total{limiter=l}":            12,
		"ratelimit_fallback_refused_calls_total{limiter=l}":            13,
		"ratelimit_fallback_owed_keys{limiter=l}":                      14,
		"ratelimit_fallback_handed_back_units_total{limiter=l}":        15,
		"ratelimit_fallback_lost_units_total{limiter=l}":               16,
		"ratelimit_fallback_unknown_units{limiter=l}":                  30,
		"ratelimit_views_denied_total{limiter=l}":                      17,
		"ratelimit_views_keys{limiter=l}":                              18,
		"ratelimit_ahead_admitted_total{limiter=l}":                    40,
		"ratelimit_ahead_asked_total{limiter=l,reason=near}":           41,
		"ratelimit_ahead_asked_total{limiter=l,reason=allowance}":      42,
		"ratelimit_ahead_asked_total{limiter=l,reason=census}":         43,
		"ratelimit_ahead_asked_total{limiter=l,reason=busy}":           44,
		"ratelimit_ahead_asked_total{limiter=l,reason=unknown_key}":    45,
		"ratelimit_ahead_asked_total{limiter=l,reason=trouble}":        46,
		"ratelimit_ahead_overdrawn_units_total{limiter=l}":             47,
		"ratelimit_ahead_unacknowledged_units{limiter=l}":              48,
		"ratelimit_memory_keys{limiter=l}":                             26,
		"ratelimit_memory_expired_keys_total{limiter=l}":               27,
		"ratelimit_memory_evicted_keys_total{limiter=l}":               28,
		"ratelimit_memory_refused_keys_total{limiter=l}":               29,
	})
}

// TestFiguresOfMemory: a limiter that is not shared has no metrics of Redis.
func TestFiguresOfMemory(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg)
	named(t, "m", newMemory(t), m, byIP("p", hourly))
	values, _ := gather(t, reg)
	for series := range values {
		if strings.Contains(series, "limiter=m") && !strings.HasPrefix(series, "ratelimit_memory_") {
			t.Errorf("got %s, want metrics of memory only", series)
		}
	}
	if _, ok := values["ratelimit_memory_keys{limiter=m}"]; !ok {
		t.Errorf("got %v, want the keys in memory", values)
	}
}
