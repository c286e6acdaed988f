// The numbers of a limiter's Stats as metrics.

package prommetrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

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

// asked has why calls asked Redis that could have been admitted ahead.
var asked = []struct {
	reason string
	value  func(*algorithms.Stats) uint64
}{
	{"near", func(s *algorithms.Stats) uint64 { return s.Ahead.Near }},
	{"allowance", func(s *algorithms.Stats) uint64 { return s.Ahead.Allowance }},
	{"census", func(s *algorithms.Stats) uint64 { return s.Ahead.Census }},
	{"busy", func(s *algorithms.Stats) uint64 { return s.Ahead.Busy }},
	{"unknown_key", func(s *algorithms.Stats) uint64 { return s.Ahead.Unknown }},
	{"trouble", func(s *algorithms.Stats) uint64 { return s.Ahead.Trouble }},
}
