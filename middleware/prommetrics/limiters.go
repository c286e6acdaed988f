// The limiters that are watched, and their Stats at each scrape.

package prommetrics

import (
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
)

// A statsLimiter is a limiter that counts what it does, as all limiters of this
// module do.
type statsLimiter interface {
	algorithms.Limiter
	Stats() algorithms.Stats
}

// Watch adds the Stats of a limiter under the label limiter=name: of an
// algorithms.Memory, a shared.Limiter, or any limiter with a method Stats. If two
// limiters have one name, the last is watched. An error means that the limiter
// has no Stats, or that the name is not UTF-8.
func (m *Metrics) Watch(name string, limiter algorithms.Limiter) error {
	counted, ok := limiter.(statsLimiter)
	if !ok {
		return fmt.Errorf("prommetrics: limiter %q is a %T, which has no Stats", name, limiter)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("prommetrics: the name %q of a limiter is not UTF-8", name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limiters[name] = counted
	return nil
}

var (
	redisErrors = prometheus.NewDesc("ratelimit_redis_errors_total",
		"Scripts that failed, by reason.", []string{"limiter", "reason"}, nil)
	batchSize = prometheus.NewDesc("ratelimit_redis_batch_checks",
		"Checks per script: of all callers that shared a round trip.", []string{"limiter"}, nil)
)

// collectLimiters collects the Stats of what is watched. It requires no lock.
func (m *Metrics) collectLimiters(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	watched := maps.Clone(m.limiters)
	m.mu.Unlock()
	for name, limiter := range watched {
		s := limiter.Stats()
		for i := range figures {
			if f := &figures[i]; s.Shared || !f.shared {
				ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&s), name)
			}
		}
		if !s.Shared {
			continue
		}
		for reason, n := range s.Redis.Errors {
			ch <- prometheus.MustNewConstMetric(redisErrors, prometheus.CounterValue, float64(n), name, reason)
		}
		ch <- batches(&s, name)
	}
}

func batches(s *algorithms.Stats, name string) prometheus.Metric {
	sizes := s.Redis.Batches
	buckets, total := make(map[float64]uint64, len(sizes)-1), uint64(0)
	for i, n := range sizes {
		total += n
		if i < len(sizes)-1 {
			buckets[float64(int(1)<<i)] = total
		}
	}
	return prometheus.MustNewConstHistogram(batchSize, total, float64(s.Redis.Batched), buckets, name)
}
