package middleware

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// statusView is what the page shows, and what it is as JSON.
type statusView struct {
	At        time.Time      `json:"at"`
	UpSeconds int64          `json:"up_seconds"`
	WindowMS  int64          `json:"window_ms"` // what the last minute is: up to 65 s
	Requests  uint64         `json:"requests"`  // in it
	Refused   uint64         `json:"refused"`   // of these
	Policies  []policyStatus `json:"policies"`
	Decisions []decisionView `json:"decisions"`
	Limiters  []limiterView  `json:"limiters"`
	Findings  []Finding      `json:"findings"`
}

// policyStatus is a policy and what it did in the last minute.
type policyStatus struct {
	Name      string                      `json:"name"`
	Limit     algorithms.Limit            `json:"limit"`
	Tiers     map[string]algorithms.Limit `json:"tiers,omitempty"`
	Candidate *algorithms.Limit           `json:"candidate,omitempty"`
	Fail      string                      `json:"fail"`
	Modes     []string                    `json:"modes,omitempty"`
	Overrides int                         `json:"overrides"`
	Everyone  *overrides.Override         `json:"everyone,omitempty"` // the override of all its keys
	Requests  uint64                      `json:"requests"`
	Outcomes  map[string]uint64           `json:"outcomes,omitempty"`
	Offenders []offenderView              `json:"offenders,omitempty"`
}

// offenderView is an Offender.
type offenderView struct {
	Key    string    `json:"key"`
	Denied uint64    `json:"denied"`
	Error  uint64    `json:"error"`
	Of     uint64    `json:"of"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// decisionView says how long the decisions of a source took.
type decisionView struct {
	Source string        `json:"source"`
	Count  uint64        `json:"count"`
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
}

// view collects what there is to see.
func (s *Status) view(ctx context.Context) *statusView {
	middlewares, limiters := s.watched()
	now := time.Since(s.made)
	v := &statusView{
		At: s.made.Add(now).UTC(), UpSeconds: int64(now / time.Second),
		Policies: []policyStatus{}, Limiters: []limiterView{}, Findings: []Finding{},
	}
	v.count(s.decisions.last(now))
	for _, m := range middlewares {
		for _, p := range m.config.Load().policies {
			v.add(s.policyStatus(m, p, now))
		}
		v.Findings = append(v.Findings, m.Findings()...)
	}
	for _, l := range limiters {
		v.Limiters = append(v.Limiters, newLimiterView(l.name, l.limiter))
		if examined, ok := l.limiter.(interface {
			Findings(context.Context) []Finding
		}); ok {
			v.Findings = append(v.Findings, examined.Findings(ctx)...)
		}
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Policy, b.Policy)) })
	return v
}

// count fills in the figures of decisions.
func (v *statusView) count(counts []uint32, long time.Duration) {
	v.WindowMS = long.Milliseconds()
	v.Requests, v.Refused = uint64(counts[countDecided]), uint64(counts[countRefused])
	for _, source := range []algorithms.Source{algorithms.Shared, algorithms.Local, algorithms.Undecided} {
		of := counts[int(source)*durationBuckets:][:durationBuckets]
		d := decisionView{Source: source.String(), P50: quantile(of, 50), P99: quantile(of, 99)}
		for _, n := range of {
			d.Count += uint64(n)
		}
		v.Decisions = append(v.Decisions, d)
	}
}

// add adds a policy, unless it is there already: in a RouteTable one policy may
// stand for several routes.
func (v *statusView) add(p policyStatus) {
	for i := range v.Policies {
		if other := &v.Policies[i]; other.Name == p.Name && other.Limit == p.Limit && maps.Equal(other.Tiers, p.Tiers) {
			other.Offenders = mergeOffenders(other.Offenders, p.Offenders)
			return
		}
	}
	v.Policies = append(v.Policies, p)
}

const shownOffenders = 5 // of each policy

func (s *Status) policyStatus(m *Middleware, p *policy, now time.Duration) policyStatus {
	v := policyStatus{
		Name: p.Name, Limit: p.Limit, Tiers: p.Tiers, Candidate: p.Candidate, Fail: p.Fail.String(),
		Modes: p.modes(), Outcomes: make(map[string]uint64),
	}
	if m.overrides != nil {
		if o, found := m.overrides.Find(p.Name, overrides.Everyone); found {
			v.Everyone = &o
		}
		if table, ok := m.overrides.(interface{ Count(policy string) int }); ok {
			v.Overrides = table.Count(p.Name)
		}
	}
	counts, _ := s.of(p.Name, now).last(now)
	for outcome, n := range counts {
		if n > 0 {
			v.Outcomes[Outcome(outcome).String()] = uint64(n)
			v.Requests += uint64(n)
		}
	}
	for _, o := range m.TopDenied(p.Name, shownOffenders) {
		v.Offenders = append(v.Offenders, offenderView{o.Key, o.Denied, o.Error, o.Of, o.First.UTC(), o.Last.UTC()})
	}
	return v
}

// mergeOffenders returns the worst of two lists of one policy's offenders.
func mergeOffenders(a, b []offenderView) []offenderView {
	for _, o := range b {
		if i := slices.IndexFunc(a, func(known offenderView) bool { return known.Key == o.Key }); i >= 0 {
			a[i].Denied, a[i].Error, a[i].Of = a[i].Denied+o.Denied, a[i].Error+o.Error, a[i].Of+o.Of
			continue
		}
		a = append(a, o)
	}
	slices.SortStableFunc(a, func(a, b offenderView) int { return cmp.Compare(b.Denied-b.Error, a.Denied-a.Error) })
	return a[:min(len(a), shownOffenders)]
}

// modes returns what is out of the ordinary about a policy, in a word each.
func (p *policy) modes() (modes []string) {
	for _, mode := range []struct {
		name string
		on   bool
	}{
		{"shadow", p.Shadow}, {"private", p.Private}, {"capacity", p.Capacity}, {"late", p.Late},
		{"charge-if", p.ChargeIf != nil}, {"ban", p.Ban != nil}, {"cost", p.Cost != nil && !p.Late},
	} {
		if mode.on {
			modes = append(modes, mode.name)
		}
	}
	return modes
}
