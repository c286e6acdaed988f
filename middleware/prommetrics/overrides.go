// The overrides in force.

package prommetrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/middleware"
)

var overridesInForce = describe("ratelimit_overrides", "Overrides in force, by policy (* for all policies) and mode.", "policy", "mode")

// everyPolicy is the policy of an override for all policies, in package overrides.
const everyPolicy = "*"

// collectOverrides collects the overrides of the policies. Middlewares mostly have one table: of several, the one with
// most overrides of a policy counts.
func (m *Metrics) collectOverrides(ch chan<- prometheus.Metric) {
	most := make(map[[2]string]int)
	for _, middleware := range m.watchedMiddlewares() {
		table, ok := middleware.Overrides().(interface {
			Count(policy string) map[ratelimit.Mode]int
		})
		if !ok {
			continue
		}
		names := []string{everyPolicy}
		for _, p := range middleware.Policies() {
			names = append(names, p.Name)
		}
		for _, name := range names {
			of := table.Count(name)
			for _, mode := range []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned} {
				if n := of[mode]; n > 0 || mode == ratelimit.ModeBanned {
					at := [2]string{name, cmp.Or(string(mode), "on")}
					most[at] = max(most[at], n)
				}
			}
		}
	}
	for at, n := range most {
		ch <- prometheus.MustNewConstMetric(overridesInForce, prometheus.GaugeValue, float64(n), at[0], at[1])
	}
}
