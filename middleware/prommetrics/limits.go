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
			override, mode := everyone(middleware, &p)
			send := func(tier string, l algorithms.Limit) {
				l = cmp.Or(override, l)
				name := limitName{seriesName{p.Name, tier}, l.String(), mode, strconv.FormatBool(p.Capacity)}
				if !sent[name] {
					sent[name] = true
					ch <- prometheus.MustNewConstMetric(policyLimit, prometheus.GaugeValue, unitsOf(l),
						p.Name, labelOf(tier), name.limit, name.mode, name.capacity)
				}
			}
			send("", p.Limit)
			for tier, l := range p.Tiers {
				send(tier, l)
			}
		}
	}
}

// everyone returns the limit of the override of all keys, which is zero if there is
// none, and the mode in which the policy applies to a key without an override.
func everyone(middleware *ratelimit.Middleware, p *ratelimit.Policy) (limit algorithms.Limit, mode string) {
	if all := middleware.Overrides(); all != nil {
		if o, found := all.Find(p.Name, ratelimit.Everyone); found {
			limit, mode = o.Limit, string(o.Mode)
		}
	}
	if mode == "" && p.Shadow {
		mode = string(ratelimit.ModeShadow)
	}
	return limit, cmp.Or(mode, "on")
}

// unitsOf returns the sustained rate of a limit, or its units if it has no rate.
func unitsOf(l algorithms.Limit) float64 {
	if l.Algorithm().Concurrent() || l.Window() == 0 {
		return float64(l.Requests())
	}
	return float64(l.Requests()) / l.Window().Seconds()
}
