// The gauges of policies, overrides and findings, which a scrape computes.

package prommetrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/findings"
)

var (
	limitUnits  = describe("ratelimit_limit_units", "Units of the limit in force: in its window, or at once if it is concurrent.", "policy", "tier")
	limitWindow = describe("ratelimit_limit_window_seconds", "Window of the limit in force, with its text, its mode, and whether it is a capacity.",
		"policy", "tier", "limit", "mode", "capacity")
	present          = describe("ratelimit_tenants", "Tenants that share the limit and are present in this process.", "policy")
	shareUnits       = describe("ratelimit_share_units", "Units of the limit in force that are the share of a tenant of weight 1.", "policy")
	topOffender      = describe("ratelimit_top_offender_denial_ratio", "Largest share of one key in the policy's recent denials, with the key's tier.", "policy", "tier")
	deniedKeys       = describe("ratelimit_denied_keys", "Keys that the policy denied in the last 10 to 20 minutes, up to 128.", "policy")
	clientDenials    = describe("ratelimit_client_denials", "Denials of a named client in the last 10 to 20 minutes.", "policy", "client")
	overridesInForce = describe("ratelimit_overrides", "Overrides in force, by policy (* for all policies) and mode.", "policy", "mode")
	foundProblems    = describe("ratelimit_findings", "Present configuration problems by code.", "code")
)

const (
	rememberedKeys = 128 // TopDenied knows no more
	everyPolicy    = "*" // the policy of an override for all policies, in package overrides
)

// gauges are the values of a scrape. Several Middlewares may have policies of one name, or one table of overrides.
type gauges map[gauge]float64

// A gauge is one series, with the values of its labels.
type gauge struct {
	desc   *prometheus.Desc
	labels [5]string
	n      int // labels
}

// put adds a value. merge joins it with the value of the same series.
func (all gauges) put(merge func(a, b float64) float64, desc *prometheus.Desc, value float64, labels ...string) {
	g := gauge{desc: desc}
	g.n = copy(g.labels[:], labels)
	if other, known := all[g]; known {
		value = merge(other, value)
	}
	all[g] = value
}

func sum(a, b float64) float64 { return a + b }

// collectGauges collects the gauges of all open Middlewares, without asking Redis.
func (m *Metrics) collectGauges(ch chan<- prometheus.Metric) {
	all := make(gauges)
	for _, code := range findings.Codes() {
		all.put(sum, foundProblems, 0, code)
	}
	m.mu.Lock()
	middlewares := slices.Collect(maps.Keys(m.middlewares))
	m.mu.Unlock()
	worst := make(map[string]offender)
	for _, middleware := range middlewares {
		overrides := []string{everyPolicy}
		for _, p := range middleware.Policies() {
			all.putLimits(middleware, &p)
			m.putDenials(all, worst, middleware, p.Name)
			overrides = append(overrides, p.Name)
		}
		all.putOverrides(middleware.Overrides(), overrides)
		for _, f := range middleware.Findings() {
			all.put(sum, foundProblems, 1, f.Code)
		}
	}
	for policy, o := range worst {
		all.put(sum, topOffender, o.ratio, policy, labelOf(o.tier))
	}
	for l := range m.watched() {
		for code, holds := range l.stats.Stats().Redis.Findings {
			all.put(sum, foundProblems, map[bool]float64{true: 1}[holds], code)
		}
	}
	for g, value := range all {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, g.labels[:g.n]...)
	}
}

// putLimits adds the limits of a policy in force, and how tenants share the one without a tier. Of different limits the
// largest units count, and the smallest share.
func (all gauges) putLimits(middleware *ratelimit.Middleware, p *ratelimit.Policy) {
	for _, tier := range append(slices.Collect(maps.Keys(p.Tiers)), "") {
		f, found := middleware.InForce(p.Name, ratelimit.Everyone, tier, algorithms.Limit{})
		if !found {
			return // an Update has just removed the policy
		}
		label, units := labelOf(tier), float64(f.Limit.Requests())
		all.put(math.Max, limitUnits, units, p.Name, label)
		all.put(math.Max, limitWindow, f.Limit.Window().Seconds(), p.Name, label, f.Limit.String(), cmp.Or(string(f.Mode), "on"), strconv.FormatBool(p.Capacity))
		if tier == "" && p.ShareBy != (keyfunc.Key{}) {
			tenants, weights := middleware.Inside().Tenants(p.Name)
			all.put(math.Max, present, float64(tenants), p.Name)
			all.put(math.Min, shareUnits, units/float64(max(weights, 1)), p.Name)
		}
	}
}

// An offender is the key that a policy denies most: its part of the denials, and its tier.
type offender struct {
	ratio float64
	tier  string
}

// putDenials adds how many keys a policy has denied lately, and what the named clients have of the denials. It notes what one
// key certainly has: of the policies of one name, the largest ratio counts.
func (m *Metrics) putDenials(all gauges, worst map[string]offender, middleware *ratelimit.Middleware, policy string) {
	top := middleware.TopDenied(policy, rememberedKeys)
	var one offender
	if len(top) > 0 {
		one = offender{float64(top[0].Denied-top[0].Error) / float64(top[0].Of), top[0].Tier}
	}
	// An Update may not have announced its policies yet.
	if _, ok := (*m.series.Load())[seriesName{policy, one.tier}]; ok {
		if other, known := worst[policy]; !known || one.ratio > other.ratio {
			worst[policy] = one
		}
		all.put(math.Max, deniedKeys, float64(len(top)), policy)
	}
	for _, name := range m.clients {
		all.put(sum, clientDenials, 0, policy, name) // the series exists before the first denial
	}
	for _, o := range top {
		first, _, _ := strings.Cut(o.Plain, "|")
		if name, named := m.clients[first]; named {
			all.put(sum, clientDenials, float64(o.Denied-o.Error), policy, name)
		}
	}
}

// putOverrides adds the overrides of policies. Middlewares mostly have one table: of several, the one with most overrides
// of a policy counts.
func (all gauges) putOverrides(table ratelimit.Overrides, policies []string) {
	counted, ok := table.(interface {
		Count(policy string) map[ratelimit.Mode]int
	})
	if !ok {
		return
	}
	for _, policy := range policies {
		of := counted.Count(policy)
		for _, mode := range []ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned} {
			if n := of[mode]; n > 0 || mode == ratelimit.ModeBanned {
				all.put(math.Max, overridesInForce, float64(n), policy, cmp.Or(string(mode), "on"))
			}
		}
	}
}
