package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// A figure is one number of a limiter's Stats as a metric.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(stats) (value float64, ok bool)
}

// figures are all of them, by the part that has them.
var figures = []figure{
	ofRedis("ratelimit_redis_checks_total", "Checks that Redis was asked.",
		func(s *algorithms.RedisStats) uint64 { return s.Checks }),
	ofRedis("ratelimit_redis_scripts_total", "Scripts that were sent to Redis.",
		func(s *algorithms.RedisStats) uint64 { return s.Scripts }),
	ofRedis("ratelimit_redis_script_loads_total", "Scripts that Redis did not know and was sent whole.",
		func(s *algorithms.RedisStats) uint64 { return s.ScriptLoads }),
	ofRedis("ratelimit_redis_script_errors_total", "Scripts that failed.",
		func(s *algorithms.RedisStats) uint64 { return s.Errors }),
	ofRedis("ratelimit_redis_missing_states_total", "Checks that found no stored state: new keys, and forgotten ones.",
		func(s *algorithms.RedisStats) uint64 { return s.Missing }),

	gaugeOf("ratelimit_breaker_open", "Whether Redis is not asked, because it is in trouble (1) or is (0).",
		fallbackOf, func(s *algorithms.FallbackStats) float64 {
			if s.Open {
				return 1
			}
			return 0
		}),
	ofFallback("ratelimit_breaker_trips_total", "How often the circuit to Redis has opened.",
		func(s *algorithms.FallbackStats) uint64 { return s.Trips }),
	gaugeOf("ratelimit_instances", "Live instances that share the limits, as far as this one knows.",
		fallbackOf, func(s *algorithms.FallbackStats) float64 { return float64(s.Instances) }),
	ofFallback("ratelimit_fallback_local_checks_total", "Checks that this instance decided alone.",
		func(s *algorithms.FallbackStats) uint64 { return s.Local }),
	ofFallback("ratelimit_fallback_passed_checks_total", "Checks that nobody decided, and that failed open.",
		func(s *algorithms.FallbackStats) uint64 { return s.Passed }),
	ofFallback("ratelimit_fallback_refused_calls_total", "Calls that nobody decided, and that failed closed.",
		func(s *algorithms.FallbackStats) uint64 { return s.Refused }),
	gaugeOf("ratelimit_fallback_owed_keys", "Keys of which Redis is to be told what was admitted without it.",
		fallbackOf, func(s *algorithms.FallbackStats) float64 { return float64(s.Owed) }),
	ofFallback("ratelimit_fallback_handed_back_units_total", "Units admitted without Redis of which it was told.",
		func(s *algorithms.FallbackStats) uint64 { return s.HandedBack }),
	ofFallback("ratelimit_fallback_lost_units_total", "Units admitted without Redis of which it could not be told.",
		func(s *algorithms.FallbackStats) uint64 { return s.Lost }),

	gaugeOf("ratelimit_memory_keys", "Keys that are held in memory.",
		memoryOf, func(s *algorithms.MemoryStats) float64 { return float64(s.Keys) }),
	ofMemory("ratelimit_memory_expired_keys_total", "Keys in memory that were forgotten because they were full again.",
		func(s *algorithms.MemoryStats) uint64 { return s.Expired }),
	ofMemory("ratelimit_memory_evicted_keys_total", "Keys in memory that were forgotten to make room.",
		func(s *algorithms.MemoryStats) uint64 { return s.Evicted }),
	ofMemory("ratelimit_memory_refused_keys_total", "New keys that memory had no room for.",
		func(s *algorithms.MemoryStats) uint64 { return s.Refused }),

	ofStack("ratelimit_deny_cache_hits_total", "Calls that were denied from memory, without Redis.",
		func(s *algorithms.StackStats) uint64 { return s.Denied }),
	gaugeOf("ratelimit_deny_cache_keys", "Keys whose denials are remembered, some of them past.",
		stackOf, func(s *algorithms.StackStats) float64 { return float64(s.DeniedKeys) }),
	gaugeOf("ratelimit_lease_keys", "Keys that are asked for often, and leased.",
		stackOf, func(s *algorithms.StackStats) float64 { return float64(s.Lease.Keys) }),
	gaugeOf("ratelimit_lease_units", "Units that are on lease, to be spent by this instance.",
		stackOf, func(s *algorithms.StackStats) float64 { return float64(s.Lease.Units) }),
	ofStack("ratelimit_lease_blocks_total", "Blocks of units that were leased.",
		func(s *algorithms.StackStats) uint64 { return s.Lease.Blocks }),
	ofStack("ratelimit_lease_taken_units_total", "Units that were leased.",
		func(s *algorithms.StackStats) uint64 { return s.Lease.Leased }),
	ofStack("ratelimit_lease_spent_units_total", "Units on lease that admitted requests.",
		func(s *algorithms.StackStats) uint64 { return s.Lease.Spent }),
	ofStack("ratelimit_lease_returned_units_total", "Units on lease that went back.",
		func(s *algorithms.StackStats) uint64 { return s.Lease.Returned }),
	ofStack("ratelimit_lease_lost_units_total", "Units on lease whose window ended, or that could not go back.",
		func(s *algorithms.StackStats) uint64 { return s.Lease.Lost }),
}

func redisOf(s stats) *algorithms.RedisStats       { return s.redis }
func fallbackOf(s stats) *algorithms.FallbackStats { return s.fallback }
func memoryOf(s stats) *algorithms.MemoryStats     { return s.memory }
func stackOf(s stats) *algorithms.StackStats       { return s.stack }

func ofRedis(name, help string, value func(*algorithms.RedisStats) uint64) figure {
	return counterOf(name, help, redisOf, value)
}

func ofFallback(name, help string, value func(*algorithms.FallbackStats) uint64) figure {
	return counterOf(name, help, fallbackOf, value)
}

func ofMemory(name, help string, value func(*algorithms.MemoryStats) uint64) figure {
	return counterOf(name, help, memoryOf, value)
}

func ofStack(name, help string, value func(*algorithms.StackStats) uint64) figure {
	return counterOf(name, help, stackOf, value)
}

func counterOf[S any](name, help string, part func(stats) *S, value func(*S) uint64) figure {
	f := gaugeOf(name, help, part, func(s *S) float64 { return float64(value(s)) })
	f.kind = prometheus.CounterValue
	return f
}

func gaugeOf[S any](name, help string, part func(stats) *S, value func(*S) float64) figure {
	return figure{
		prometheus.NewDesc(name, help, []string{"limiter"}, nil), prometheus.GaugeValue,
		func(all stats) (float64, bool) {
			s := part(all)
			if s == nil {
				return 0, false
			}
			return value(s), true
		},
	}
}
