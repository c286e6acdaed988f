// The Middlewares that are watched, their limiters, and the limiters' Stats at
// each scrape.

package prommetrics

import (
	"fmt"
	"slices"

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

// collectLimiters collects the Stats of all limiters.
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
		for _, a := range asked {
			ch <- prometheus.MustNewConstMetric(aheadAsked, prometheus.CounterValue, float64(a.value(&s)), l.label, a.reason)
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
