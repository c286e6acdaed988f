package prommetrics

import (
	"fmt"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// ObserveLimiter counts what happens inside limiters: it is for the Observe of
// their options, e.g. algorithms.Options.Observe.
func (m *Metrics) ObserveLimiter(e algorithms.Event) {
	if int(e.Kind) < len(m.byEvent) {
		m.byEvent[e.Kind].Inc()
	}
	if e.Kind == algorithms.EventError && int(e.Class) < len(m.byClass) {
		m.byClass[e.Class].Inc()
	}
}

// words returns the counters of all values of an enumeration, from 1 to where
// its names end, so that no series begins with what it should have told. Of 0,
// which does not happen, there is one that nobody sees.
func words(v *prometheus.CounterVec, name func(int) string) []prometheus.Counter {
	counters := []prometheus.Counter{prometheus.NewCounter(prometheus.CounterOpts{})}
	for i := 1; name(i) != "unknown"; i++ {
		counters = append(counters, v.WithLabelValues(name(i)))
	}
	return counters
}

// Watch adds the Stats of a limiter, a *Stack, *Redis, *Fallback or *Memory of
// package algorithms, under the label limiter=name. Of two limiters of one name
// the last is watched. An error means that it is none of these, or that the name
// is not UTF-8.
//
// A Stack includes its parts: they need no names of their own.
func (m *Metrics) Watch(name string, limiter algorithms.Limiter) error {
	if _, ok := statsOf(limiter); !ok {
		return fmt.Errorf("prommetrics: limiter %q is a %T, which has no Stats", name, limiter)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("prommetrics: the name %q of a limiter is not UTF-8", name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limiters[name] = limiter
	return nil
}

// stats are those of a limiter and of its parts; nil of what it does not have.
type stats struct {
	redis    *algorithms.RedisStats
	fallback *algorithms.FallbackStats
	memory   *algorithms.MemoryStats
	stack    *algorithms.StackStats
}

func statsOf(limiter algorithms.Limiter) (s stats, ok bool) {
	switch l := limiter.(type) {
	case *algorithms.Stack:
		all := l.Stats()
		return stats{&all.Redis, &all.Fallback, &all.Memory, &all}, true
	case *algorithms.Redis:
		of := l.Stats()
		return stats{redis: &of}, true
	case *algorithms.Fallback:
		of := l.Stats()
		return stats{fallback: &of}, true
	case *algorithms.Memory:
		of := l.Stats()
		return stats{memory: &of}, true
	default:
		return stats{}, false
	}
}

// collectLimiters collects the Stats of what is watched. It requires no lock.
func (m *Metrics) collectLimiters(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	watched := make(map[string]algorithms.Limiter, len(m.limiters))
	for name, limiter := range m.limiters {
		watched[name] = limiter
	}
	m.mu.Unlock()
	for name, limiter := range watched {
		s, _ := statsOf(limiter)
		for i := range figures {
			f := &figures[i]
			if value, ok := f.of(s); ok {
				ch <- prometheus.MustNewConstMetric(f.desc, f.kind, value, name)
			}
		}
		if s.redis != nil {
			ch <- batches(s.redis, name)
		}
	}
}

var batchSize = prometheus.NewDesc("ratelimit_redis_batch_checks",
	"Checks that scripts in Redis held: those of callers that shared a round trip.", []string{"limiter"}, nil)

func batches(s *algorithms.RedisStats, name string) prometheus.Metric {
	buckets, total := make(map[float64]uint64, len(s.Batches)-1), uint64(0)
	for i, n := range s.Batches {
		total += n
		if i < len(s.Batches)-1 {
			buckets[float64(int(1)<<i)] = total
		}
	}
	return prometheus.MustNewConstHistogram(batchSize, total, float64(s.Batched), buckets, name)
}
