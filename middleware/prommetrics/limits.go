// The limits in force.

package prommetrics

import (
	"cmp"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

var (
	limitUnits  = describe("ratelimit_limit_units", "Units of the limit in force: in its window, or at once if it is concurrent.", "policy", "tier")
	limitWindow = describe("ratelimit_limit_window_seconds", "Window of the limit in force, with its text, its mode, and whether it is a capacity.",
		"policy", "tier", "limit", "mode", "capacity")
)

// A limitName has the labels of a limit in force.
type limitName struct {
	seriesName
	limit, mode, capacity string
}

// collectLimits collects the limits of the policies in force. Equal policies of
// several Middlewares have one series. Of different ones the largest units count.
func (m *Metrics) collectLimits(ch chan<- prometheus.Metric) {
	sent, units := make(map[limitName]bool), make(map[seriesName]int64)
	for _, middleware := range m.watchedMiddlewares() {
		for _, p := range middleware.Policies() {
			send := func(tier string) {
				f, found := middleware.InForce(p.Name, ratelimit.Everyone, tier, algorithms.Limit{})
				name := limitName{seriesName{p.Name, tier}, f.Limit.String(), cmp.Or(string(f.Mode), "on"), strconv.FormatBool(p.Capacity)}
				if found && !sent[name] { // an Update may just have removed the policy
					sent[name] = true
					units[name.seriesName] = max(units[name.seriesName], f.Limit.Requests())
					ch <- prometheus.MustNewConstMetric(limitWindow, prometheus.GaugeValue, f.Limit.Window().Seconds(),
						p.Name, labelOf(tier), name.limit, name.mode, name.capacity)
				}
			}
			send("")
			for tier := range p.Tiers {
				send(tier)
			}
		}
	}
	for name, n := range units {
		ch <- prometheus.MustNewConstMetric(limitUnits, prometheus.GaugeValue, float64(n), name.policy, labelOf(name.tier))
	}
}
