// The Middlewares that are watched, their limiters, and the limiters' Stats at
// each scrape.

package prommetrics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// A limiter is a limiter with Stats, and its label.
type limiter struct {
	label string
	stats wrapped.Counter
}

// register watches a Middleware, and adds the series of its policies.
func (m *Metrics) register(middleware *ratelimit.Middleware) {
	_, limits := middleware.Limiter()
	_, alone := wrapped.Find[*algorithms.Memory](limits)
	for _, p := range middleware.Policies() {
		m.begin(&p, alone)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.middlewares[middleware]; !ok {
		m.middlewares[middleware] = m.limiterOf(middleware)
	}
}

// unregister ends the watch of a Middleware. Its counters stay, because a counter
// that vanishes and returns at 0 spoils rate().
func (m *Metrics) unregister(middleware *ratelimit.Middleware) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.middlewares, middleware)
}

// limiterOf returns the limiter of a Middleware under the label that it has, or
// under a free label; nil if it has no Stats. It requires mu.
func (m *Metrics) limiterOf(middleware *ratelimit.Middleware) *limiter {
	name, limits := middleware.Limiter()
	stats, ok := wrapped.Find[wrapped.Counter](limits)
	if !ok {
		return nil
	}
	taken := make(map[string]bool)
	for _, other := range m.middlewares {
		if other == nil {
			continue
		}
		if wrapped.Same(other.stats, stats) {
			return other
		}
		taken[other.label] = true
	}
	label := labelOf(name)
	for n := 2; taken[label]; n++ {
		label = fmt.Sprintf("%s-%d", labelOf(name), n)
	}
	return &limiter{label, stats}
}

// watched returns each limiter once.
func (m *Metrics) watched() map[*limiter]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[*limiter]bool)
	for _, l := range m.middlewares {
		if l != nil {
			all[l] = true
		}
	}
	return all
}

var (
	redisErrors = describe("ratelimit_redis_errors_total", "Redis failures by reason.", "limiter", "reason")
	aheadAsked  = describe("ratelimit_ahead_asked_total", "Calls that asked Redis although they could have been admitted ahead, by reason.", "limiter", "reason")
	roundTrip   = describe("ratelimit_redis_round_trip_seconds", "Round trips of scripts, including late replies and probes.", "limiter")
	batchSize   = describe("ratelimit_redis_batch_checks", "Checks per script, of all callers that share the round trip.", "limiter")
)

func (m *Metrics) collectLimiters(ch chan<- prometheus.Metric) {
	for l := range m.watched() {
		s := l.stats.Stats()
		figures := memoryFigures
		if s.Shared {
			figures = append(slices.Clone(memoryFigures), sharedFigures...)
		}
		for _, f := range figures {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&s), l.label)
		}
		if !s.Shared {
			continue
		}
		for reason, n := range asked(&s) {
			ch <- prometheus.MustNewConstMetric(aheadAsked, prometheus.CounterValue, float64(n), l.label, reason)
		}
		for reason, n := range s.Redis.Errors {
			ch <- prometheus.MustNewConstMetric(redisErrors, prometheus.CounterValue, float64(n), l.label, reason)
		}
		ch <- batches(&s, l.label)
		ch <- roundTrips(&s, l.label)
	}
}

func batches(s *algorithms.Stats, label string) prometheus.Metric {
	sizes := s.Redis.Batches
	bounds, total := make(map[float64]uint64, len(sizes)-1), uint64(0)
	for i, n := range sizes {
		total += n
		if i < len(sizes)-1 {
			bounds[float64(int(1)<<i)] = total
		}
	}
	return prometheus.MustNewConstHistogram(batchSize, total, float64(s.Redis.Batched), bounds, label)
}

func roundTrips(s *algorithms.Stats, label string) prometheus.Metric {
	t := &s.Redis.RoundTrips
	bounds := make(map[float64]uint64, len(t.Within))
	for bound, n := range t.Within {
		bounds[bound.Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(roundTrip, t.Count, t.Sum.Seconds(), bounds, label)
}

// A figure is one number of a limiter's Stats as a metric.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*algorithms.Stats) float64
}

// figureOf returns a figure: a counter if the name ends with total, as all names of counters do, or else a gauge.
func figureOf[N ~int | ~int64 | ~uint64](name, help string, value func(*algorithms.Stats) N) figure {
	f := figure{
		desc: describe(name, help, "limiter"), kind: prometheus.GaugeValue,
		value: func(s *algorithms.Stats) float64 { return float64(value(s)) },
	}
	if strings.HasSuffix(name, "_total") {
		f.kind = prometheus.CounterValue
	}
	return f
}

// memoryFigures are those that every limiter has.
var memoryFigures = []figure{
	figureOf("ratelimit_memory_keys", "Keys in memory, including expired keys.",
		func(s *algorithms.Stats) int { return s.Memory.Keys }),
	figureOf("ratelimit_memory_expired_keys_total", "Expired keys removed from memory.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Expired }),
	figureOf("ratelimit_memory_evicted_keys_total", "Keys evicted from memory to make room.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Evicted }),
	figureOf("ratelimit_memory_refused_keys_total", "New keys refused for lack of room in memory.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Refused }),
}

// sharedFigures are those of shared limiters only.
var sharedFigures = []figure{
	figureOf("ratelimit_redis_checks_total", "Checks sent to Redis.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Checks }),
	figureOf("ratelimit_redis_scripts_total", "Scripts sent to Redis.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Scripts }),
	figureOf("ratelimit_redis_script_loads_total", "Scripts that Redis did not know.",
		func(s *algorithms.Stats) uint64 { return s.Redis.ScriptLoads }),
	figureOf("ratelimit_redis_missing_states_total", "Checks without a stored state in Redis.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Missing }),
	figureOf("ratelimit_redis_excused_round_trips_total", "Round trips that expired because this process was late.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Excused }),

	figureOf("ratelimit_breaker_open", "Open circuits to Redis, or to masters of a Cluster.",
		func(s *algorithms.Stats) int { return s.Fallback.Open }),
	figureOf("ratelimit_breaker_trips_total", "Openings of circuits.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Trips }),
	figureOf("ratelimit_instances", "Live instances that share the limits.",
		func(s *algorithms.Stats) int { return s.Fallback.Instances }),
	figureOf("ratelimit_fallback_local_checks_total", "Checks decided by this instance alone.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Local }),
	figureOf("ratelimit_fallback_passed_checks_total", "Checks that failed open.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Passed }),
	figureOf("ratelimit_fallback_refused_calls_total", "Calls that failed closed.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Refused }),
	figureOf("ratelimit_fallback_owed_keys", "Keys with local charges that Redis has not received.",
		func(s *algorithms.Stats) int { return s.Fallback.Owed }),
	figureOf("ratelimit_fallback_handed_back_units_total", "Units charged locally that Redis received later.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.HandedBack }),
	figureOf("ratelimit_fallback_lost_units_total", "Units charged locally that Redis could not receive.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Lost }),
	figureOf("ratelimit_fallback_unknown_units", "Units admitted locally that Redis has perhaps charged.",
		func(s *algorithms.Stats) int64 { return s.Fallback.Unknown }),
	figureOf("ratelimit_fallback_kept_returns", "Returns of units that wait for Redis.",
		func(s *algorithms.Stats) int { return s.Fallback.Returns }),
	figureOf("ratelimit_fallback_late_returns_total", "Returns of units that Redis received late.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Returned }),
	figureOf("ratelimit_fallback_lost_returns_total", "Returns whose units may stay charged.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.ReturnsLost }),

	figureOf("ratelimit_views_denied_total", "Calls denied from memory, without Redis.",
		func(s *algorithms.Stats) uint64 { return s.Views.Denied }),
	figureOf("ratelimit_views_keys", "Keys whose last answers the limiter keeps, including expired keys.",
		func(s *algorithms.Stats) int { return s.Views.Keys }),

	figureOf("ratelimit_ahead_admitted_total", "Calls admitted before Redis charged them.",
		func(s *algorithms.Stats) uint64 { return s.Ahead.Admitted }),
	figureOf("ratelimit_ahead_overdrawn_units_total", "Units admitted ahead that Redis would have denied.",
		func(s *algorithms.Stats) uint64 { return s.Ahead.Overdrawn }),
	figureOf("ratelimit_ahead_unacknowledged_units", "Units admitted ahead that Redis has not acknowledged.",
		func(s *algorithms.Stats) int64 { return s.Ahead.Unacknowledged }),
}

// asked returns why calls asked Redis that could have been admitted ahead.
func asked(s *algorithms.Stats) map[string]uint64 {
	return map[string]uint64{
		"near": s.Ahead.Near, "allowance": s.Ahead.Allowance, "census": s.Ahead.Census,
		"busy": s.Ahead.Busy, "unknown_key": s.Ahead.Unknown, "trouble": s.Ahead.Trouble,
	}
}
