package prommetrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "github.com/penstock-go/penstock/middleware"
)

// WatchOffenders adds, for each policy of a middleware that has met requests,
// what part of its recent denials is of one key: see TopDenied, which says whose
// it is. Of several middlewares with a policy of one name the largest part
// counts.
func (m *Metrics) WatchOffenders(middleware *ratelimit.Middleware) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.middlewares, middleware) {
		m.middlewares = append(m.middlewares, middleware)
	}
}

// collectOffenders requires mu.
func (m *Metrics) collectOffenders(ch chan<- prometheus.Metric) {
	if len(m.middlewares) == 0 {
		return
	}
	for policy := range m.policies {
		ratio := 0.0
		for _, middleware := range m.middlewares {
			// What is counted of others' denials is not held against a key.
			for _, o := range middleware.TopDenied(policy, 1) {
				ratio = max(ratio, float64(o.Denied-o.Error)/float64(o.Of))
			}
		}
		ch <- prometheus.MustNewConstMetric(topOffender, prometheus.GaugeValue, ratio, policy)
	}
}
