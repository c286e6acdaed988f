// The numbers of a limiter's Stats as metrics.

package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// A figure is one number of a limiter's Stats as a metric.
type figure struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	shared bool // only limiters that are shared have it
	value  func(*algorithms.Stats) float64
}

// A number is the type of a count or a gauge in Stats.
type number interface{ ~int | ~int64 | ~uint64 }

func counterOf[N number](name, help string, value func(*algorithms.Stats) N) figure {
	return figureOf(prometheus.CounterValue, name, help, value)
}

func gaugeOf[N number](name, help string, value func(*algorithms.Stats) N) figure {
	return figureOf(prometheus.GaugeValue, name, help, value)
}

func figureOf[N number](kind prometheus.ValueType, name, help string, value func(*algorithms.Stats) N) figure {
	return figure{
		desc: prometheus.NewDesc(name, help, []string{"limiter"}, nil), kind: kind, shared: true,
		value: func(s *algorithms.Stats) float64 { return float64(value(s)) },
	}
}

// ofEvery makes a figure one that every limiter has.
func ofEvery(f figure) figure {
	f.shared = false
	return f
}

var figures = []figure{
	counterOf("ratelimit_redis_checks_total", "Checks that Redis was asked.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Checks }),
	counterOf("ratelimit_redis_scripts_total", "Scripts sent to Redis.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Scripts }),
	counterOf("ratelimit_redis_script_loads_total", "Scripts that Redis did not know and received whole.",
		func(s *algorithms.Stats) uint64 { return s.Redis.ScriptLoads }),
	counterOf("ratelimit_redis_missing_states_total", "Checks that found no stored state: new keys, and forgotten ones.",
		func(s *algorithms.Stats) uint64 { return s.Redis.Missing }),
	counterOf("ratelimit_redis_failed_returns_total", "Failures to give back units of a denied call or a lease: they stay charged until they drain.",
		func(s *algorithms.Stats) uint64 { return s.Redis.ReturnsFailed }),

	gaugeOf("ratelimit_breaker_open", "1 while the circuit is open and Redis is bypassed.",
		func(s *algorithms.Stats) int {
			if s.Fallback.Open {
				return 1
			}
			return 0
		}),
	counterOf("ratelimit_breaker_trips_total", "Times that the circuit to Redis has opened.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Trips }),
	gaugeOf("ratelimit_instances", "Live instances that share the limits, as far as this one knows.",
		func(s *algorithms.Stats) int { return s.Fallback.Instances }),
	counterOf("ratelimit_fallback_local_checks_total", "Checks that this instance decided alone.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Local }),
	counterOf("ratelimit_fallback_passed_checks_total", "Checks that failed open.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Passed }),
	counterOf("ratelimit_fallback_refused_calls_total", "Calls that failed closed.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Refused }),
	gaugeOf("ratelimit_fallback_owed_keys", "Keys whose local charges Redis has yet to receive.",
		func(s *algorithms.Stats) int { return s.Fallback.Owed }),
	counterOf("ratelimit_fallback_handed_back_units_total", "Units admitted without Redis that it received afterwards.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.HandedBack }),
	counterOf("ratelimit_fallback_lost_units_total", "Units admitted without Redis that it could not receive.",
		func(s *algorithms.Stats) uint64 { return s.Fallback.Lost }),

	ofEvery(gaugeOf("ratelimit_memory_keys", "Keys held in memory, some of them expired.",
		func(s *algorithms.Stats) int { return s.Memory.Keys })),
	ofEvery(counterOf("ratelimit_memory_expired_keys_total", "Keys in memory that were forgotten because they were full again.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Expired })),
	ofEvery(counterOf("ratelimit_memory_evicted_keys_total", "Keys in memory that were forgotten to make room.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Evicted })),
	ofEvery(counterOf("ratelimit_memory_refused_keys_total", "New keys that memory had no room for.",
		func(s *algorithms.Stats) uint64 { return s.Memory.Refused })),

	counterOf("ratelimit_deny_cache_hits_total", "Calls denied from memory, without Redis.",
		func(s *algorithms.Stats) uint64 { return s.DenyCache.Hits }),
	gaugeOf("ratelimit_deny_cache_keys", "Keys whose denials are remembered, some of them expired.",
		func(s *algorithms.Stats) int { return s.DenyCache.Keys }),
	gaugeOf("ratelimit_lease_keys", "Hot keys, which are leased.",
		func(s *algorithms.Stats) int { return s.Lease.Keys }),
	gaugeOf("ratelimit_lease_units", "Units on lease, to be spent by this instance.",
		func(s *algorithms.Stats) int64 { return s.Lease.Units }),
	counterOf("ratelimit_lease_blocks_total", "Blocks of units that were leased.",
		func(s *algorithms.Stats) uint64 { return s.Lease.Blocks }),
	counterOf("ratelimit_lease_taken_units_total", "Units that were leased.",
		func(s *algorithms.Stats) uint64 { return s.Lease.Leased }),
	counterOf("ratelimit_lease_spent_units_total", "Units on lease that admitted requests.",
		func(s *algorithms.Stats) uint64 { return s.Lease.Spent }),
	counterOf("ratelimit_lease_returned_units_total", "Units on lease that went back.",
		func(s *algorithms.Stats) uint64 { return s.Lease.Returned }),
	counterOf("ratelimit_lease_lost_units_total", "Units on lease whose window ended, or that could not go back.",
		func(s *algorithms.Stats) uint64 { return s.Lease.Lost }),
}
