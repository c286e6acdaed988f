// The limits in force.

package prommetrics

import (
	"cmp"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

var policyLimit = describe("ratelimit_policy_limit", "Units per second of the limit in force, or units at once if it is concurrent.",
	"policy", "tier", "limit", "mode", "capacity")

// A limitName has the labels of a limit in force.
type limitName struct {
	seriesName
	limit, mode, capacity string
}

// collectLimits collects the limits of the policies in force. Equal policies of
// several Middlewares have one series.
func (m *Metrics) collectLimits(ch chan<- prometheus.Metric) {
	sent := make(map[limitName]bool)
	for _, middleware := range m.watchedMiddlewares() {
		for _, p := range middleware.Policies() {
			send := func(tier string) {
				f, found := middleware.InForce(p.Name, ratelimit.Everyone, tier, algorithms.Limit{})
				name := limitName{seriesName{p.Name, tier}, f.Limit.String(), cmp.Or(string(f.Mode), "on"), strconv.FormatBool(p.Capacity)}
				if found && !sent[name] { // an Update may just have removed the policy
					sent[name] = true
					ch <- prometheus.MustNewConstMetric(policyLimit, prometheus.GaugeValue, unitsOf(f.Limit),
						p.Name, labelOf(tier), name.limit, name.mode, name.capacity)
				}
			}
			send("")
			for tier := range p.Tiers {
				send(tier)
			}
		}
	}
}

// unitsOf returns the sustained rate of a limit, or its units if it has no rate.
func unitsOf(l algorithms.Limit) float64 {
	if l.Algorithm().Concurrent() || l.Window() == 0 {
		return float64(l.Requests())
	}
	return float64(l.Requests()) / l.Window().Seconds()
}
