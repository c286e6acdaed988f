// The tenants that share limits.

package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var (
	present    = describe("ratelimit_tenants", "Tenants that share the limit and are present in this process.", "policy")
	shareUnits = describe("ratelimit_share_units", "Units of the limit in force that are the share of a tenant of weight 1.", "policy")
)

// A division is how the limit of a policy is divided.
type division struct {
	tenants int
	units   float64 // of a weight of 1
}

// collectShares collects the shares in force. Of policies of one name, the most tenants and the smallest share count.
func (m *Metrics) collectShares(ch chan<- prometheus.Metric) {
	all := make(map[string]division)
	for _, middleware := range m.watchedMiddlewares() {
		for _, p := range middleware.Policies() {
			f, found := middleware.InForce(p.Name, ratelimit.Everyone, "", algorithms.Limit{})
			if p.ShareBy == (keyfunc.Key{}) || !found {
				continue
			}
			n, weights := middleware.Tenants(p.Name)
			one := division{n, float64(f.Limit.Requests()) / float64(max(weights, 1))}
			if other, ok := all[p.Name]; ok {
				one = division{max(one.tenants, other.tenants), min(one.units, other.units)}
			}
			all[p.Name] = one
		}
	}
	for policy, d := range all {
		ch <- prometheus.MustNewConstMetric(present, prometheus.GaugeValue, float64(d.tenants), policy)
		ch <- prometheus.MustNewConstMetric(shareUnits, prometheus.GaugeValue, d.units, policy)
	}
}
