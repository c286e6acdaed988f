package statuspage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/recent"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// A view is the content of the page, and its JSON.
type view struct {
	Summary   string               `json:"summary"`
	Health    trouble              `json:"health"` // class good, warn or bad
	Troubles  []trouble            `json:"troubles"`
	At        time.Time            `json:"at"`
	Instance  instance             `json:"instance"`
	UpSeconds int64                `json:"up_seconds"`
	WindowMS  int64                `json:"window_ms"` // the length of the last minute: up to 65 s
	Requests  uint64               `json:"requests"`  // in the last minute
	Refused   uint64               `json:"refused"`   // in the last minute, also for keys that are errors
	Denied    uint64               `json:"denied"`    // in the last minute, by a policy
	Ticks     ticks                `json:"ticks"`
	Policies  []policyView         `json:"policies"`
	Clients   []clientView         `json:"clients"` // denied most often in the last 10 to 20 minutes
	Near      []clientView         `json:"near"`    // their limits
	Latency   latencyView          `json:"latency"`
	Decisions []decisionView       `json:"decisions"` // by source
	Limiters  []limiterView        `json:"limiters"`
	Findings  []algorithms.Finding `json:"findings"`

	Reload bool `json:"-"` // the page reloads itself
}

type latencyView struct {
	Count uint64        `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

// A decisionView is the durations of the decisions of one source.
type decisionView struct {
	Source string `json:"source"`
	latencyView
}

func newLatencyView(durations []uint32) latencyView {
	l := latencyView{P50: recent.Quantile(durations, 50), P99: recent.Quantile(durations, 99)}
	for _, n := range durations {
		l.Count += uint64(n)
	}
	return l
}

// view collects the content of the page.
func (p *Page) view(ctx context.Context) *view {
	v, middlewares := p.survey(time.Since(p.made))
	for i := range v.Policies {
		v.Policies[i].countOverrides()
	}
	v.Clients, v.Near = denied(middlewares, p.console), near(middlewares, p.console)
	var found []algorithms.Finding
	for _, l := range limitersOf[interface {
		Findings(context.Context) []algorithms.Finding
	}](middlewares) {
		found = append(found, l.Findings(ctx)...)
	}
	v.Findings = append(v.Findings, found...)
	slices.SortStableFunc(v.Findings, func(a, b algorithms.Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Policy, b.Policy))
	})
	n := &p.noticed
	n.mu.Lock()
	defer n.mu.Unlock()
	n.findings = found
	n.note(v)
	v.Summary, v.Health = v.headline(), v.health(n.healthy)
	return v
}

// survey collects the figures that change while no operator reads the page.
func (p *Page) survey(now time.Duration) (*view, []*ratelimit.Middleware) {
	p.mu.Lock()
	middlewares := slices.Clone(p.middlewares)
	p.mu.Unlock()
	v := &view{
		At: p.made.Add(now).UTC(), Instance: p.instance, UpSeconds: int64(now / time.Second),
		Policies: []policyView{}, Limiters: []limiterView{}, Findings: []algorithms.Finding{},
	}
	v.count(p.decisions.Last(now))
	v.Ticks = ticks{p.decisions.Ticks(now, countedRequests), p.decisions.Ticks(now, countedDenied)}
	for _, m := range middlewares {
		policies := m.Policies()
		for i := range policies {
			one := p.policy(m, &policies[i], now)
			one.Window = v.WindowMS
			v.addPolicy(one)
		}
		for _, f := range m.Findings() {
			if !slices.Contains(v.Findings, f) { // several Middlewares mostly have one table of overrides
				v.Findings = append(v.Findings, f)
			}
		}
	}
	for name, counted := range limitersOf[wrapped.Counter](middlewares) {
		v.Limiters = append(v.Limiters, newLimiterView(name, counted.Stats()))
	}
	return v, middlewares
}

// count sets the figures of requests and decisions.
func (v *view) count(counts []uint32, window time.Duration) {
	v.WindowMS = window.Milliseconds()
	v.Requests, v.Refused, v.Denied = uint64(counts[countedRequests]), uint64(counts[countedRefused]), uint64(counts[countedDenied])
	all := make([]uint32, recent.Buckets)
	for _, source := range []algorithms.Source{algorithms.Shared, algorithms.Local, algorithms.Undecided} {
		durations := counts[int(source)*recent.Buckets:][:recent.Buckets]
		v.Decisions = append(v.Decisions, decisionView{source.String(), newLatencyView(durations)})
		for bucket, n := range durations {
			all[bucket] += n
		}
	}
	v.Latency = newLatencyView(all)
}

// A problem is a finding and all policies that have it.
type problem struct {
	algorithms.Finding
	Policies []string
}

// Problems returns the findings without repetition. First is the time of the
// earliest of equal findings.
func (v *view) Problems() (all []problem) {
	for _, f := range v.Findings { // ordered by code
		if n := len(all); n == 0 || all[n-1].Code != f.Code || all[n-1].Sentence != f.Sentence {
			all = append(all, problem{Finding: f})
		}
		last := &all[len(all)-1]
		if f.First.Before(last.First) {
			last.First = f.First
		}
		if f.Policy != "" && !slices.Contains(last.Policies, f.Policy) {
			last.Policies = append(last.Policies, f.Policy)
		}
	}
	return all
}

// Alone returns the number of decisions that the shared limiter did not make.
func (v *view) Alone() (n uint64) {
	for _, d := range v.Decisions {
		if d.Source != algorithms.Shared.String() {
			n += d.Count
		}
	}
	return n
}

// Shared reports whether a limiter counts together with other instances.
func (v *view) Shared() bool {
	return slices.ContainsFunc(v.Limiters, func(l limiterView) bool { return l.Kind == "shared" })
}

// A policyTable is a table of policies.
type policyTable struct {
	Rows   []policyView
	Shared bool // a limiter counts together with other instances
}

// Busy returns the policies with requests or an override of everyone: those with
// trouble first, then those with the most requests.
func (v *view) Busy() policyTable {
	busy := slices.DeleteFunc(slices.Clone(v.Policies), policyView.idle)
	slices.SortStableFunc(busy, func(a, b policyView) int {
		return cmp.Or(-cmp.Compare(a.Outcomes["failed_closed"], b.Outcomes["failed_closed"]), -cmp.Compare(a.Denied(), b.Denied()), -cmp.Compare(a.Requests, b.Requests))
	})
	return policyTable{busy, v.Shared()}
}

// Idle returns the other policies.
func (v *view) Idle() policyTable {
	return policyTable{slices.DeleteFunc(slices.Clone(v.Policies), func(p policyView) bool { return !p.idle() }), v.Shared()}
}

// Shown returns the troubles, except the badge's, and except findings, which the page
// shows in full.
func (v *view) Shown() []trouble {
	all := v.withoutFindings()
	return all[min(1, len(all)):]
}

func (p policyView) idle() bool { return p.Requests == 0 && p.Everyone == nil }

// Explained explains the source.
func (d decisionView) Explained() string {
	return map[string]string{
		algorithms.Shared.String(): "Redis, or what it said last", algorithms.Local.String(): "this instance alone", algorithms.Undecided.String(): "a failure mode",
	}[d.Source]
}
