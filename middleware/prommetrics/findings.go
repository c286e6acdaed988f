// The findings of Middlewares and limiters.

package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/middleware/internal/findings"
)

var foundProblems = describe("ratelimit_findings", "Present configuration problems by code.", "code")

// collectFindings collects the findings, without asking Redis.
func (m *Metrics) collectFindings(ch chan<- prometheus.Metric) {
	found := make(map[string]int)
	for _, code := range findings.Codes() {
		found[code] = 0
	}
	for _, middleware := range m.watchedMiddlewares() {
		for _, f := range middleware.Findings() {
			found[f.Code]++
		}
	}
	for l := range m.watched() {
		for code, holds := range l.stats.Stats().Redis.Findings {
			if found[code] += 0; holds {
				found[code]++
			}
		}
	}
	for code, n := range found {
		ch <- prometheus.MustNewConstMetric(foundProblems, prometheus.GaugeValue, float64(n), code)
	}
}
