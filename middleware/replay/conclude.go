// What follows from the decisions: the other algorithms, proposals, Redis.

package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// tryOthers runs the other algorithms.
func (p *replay) tryOthers(ctx context.Context) (trials []*trial, err error) {
	for i, s := range p.history.series {
		limits := others(s.limit)
		if s.returns { // a leaky bucket returns no units
			limits = slices.DeleteFunc(limits, func(l algorithms.Limit) bool { return l.Algorithm().String() == "leaky-bucket" })
		}
		for j, l := range limits {
			if j == len(trials) {
				trials = append(trials, &trial{limits: make([]algorithms.Limit, len(p.history.series))})
			}
			if l.Validate() == nil { // a log of requests holds 10 000 at most
				trials[j].limits[i] = l
			}
		}
	}
	return trials, p.history.run(ctx, p.spool, trials...)
}

// tryProposals runs the proposals: nil if there are none.
func (p *replay) tryProposals(ctx context.Context, found [][goals]*search) (*trial, error) {
	t := &trial{limits: make([]algorithms.Limit, len(p.history.series))}
	proposes := false
	for i, s := range p.history.series {
		f := found[i][clients]
		if f == nil || f.none || p.tooShort(s) != "" || isCandidate(s.policy) {
			continue
		}
		if n, enough := countable(s.limit, withHeadroom(f.hi, p.goals.Headroom)); enough {
			t.limits[i], _ = limitOf(s.limit, n)
			proposes = true
		}
	}
	if !proposes {
		return t, nil
	}
	return t, p.history.run(ctx, p.spool, t)
}

// withHeadroom adds headroom to a number, and rounds it up by less than 3 %.
func withHeadroom(n int64, headroom float64) int64 {
	n = int64(math.Ceil(float64(n)*(1+headroom) - 1e-9))
	step := int64(1)
	for n/step >= 200 {
		step *= 10
	}
	if step > 1 {
		step /= 2
	}
	return (n + step - 1) / step * step
}

// What a conclusion needs.
const (
	fewestRequests = 1_000
	fewestWindows  = 10
	fewestClients  = 10
)

// disordered reports whether so many lines were late that the report misleads: late
// lines pile up at one instant.
func (r *report) disordered() bool { return r.Late*100 > r.Requests }

// tooShort says why the log allows no conclusion about a series, "" if it does.
func (p *replay) tooShort(s *series) string {
	span := time.Duration(s.last-s.first) * time.Microsecond
	switch {
	case p.report.disordered():
		return "the log is out of order"
	case s.tally.requests < fewestRequests:
		return fmt.Sprintf("too short: the log has %d requests of this limit; a proposal needs %d", s.tally.requests, fewestRequests)
	case span < fewestWindows*s.limit.Window():
		return fmt.Sprintf("too short: the log covers %v; a proposal needs %d windows of %v", span.Round(time.Second), fewestWindows, s.limit.Window())
	}
	return ""
}

// caution says what a proposal does not account for.
func (p *replay) caution(s *series) string {
	span := time.Duration(s.last-s.first) * time.Microsecond
	switch {
	case s.keys > 1 && s.keys < fewestClients:
		return fmt.Sprintf("based on only %d clients", s.keys)
	case span < 24*time.Hour:
		return fmt.Sprintf("based on %v; other hours and days may have more traffic", span.Round(time.Second))
	}
	return ""
}

// describe reports what the engine has decided on a series.
func (p *replay) describe(i int, s *series) policyReport {
	denied := p.mostDenied(uint32(i))
	r := policyReport{
		Policy: s.policy, Limit: s.limit.String(), Redis: redisLoad{Calls: s.tally.requests, Busiest: s.busiest, Keys: s.most},
		Results: []result{resultOf(s.limit, s, &s.tally, len(denied))},
	}
	r.Route, _ = url.PathUnescape(s.route)
	const shown = 5
	r.MostDenied = denied[:min(shown, len(denied))]
	return r
}

// mostDenied returns the denied keys of a series, most denials first.
func (p *replay) mostDenied(number uint32) (denied []client) {
	for id := range p.history.keys.n {
		if k := p.history.keys.at(id); k.series == number && k.denied > 0 {
			denied = append(denied, client{k.text, k.requests, k.denied})
		}
	}
	slices.SortFunc(denied, func(a, b client) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Key, b.Key))
	})
	return denied
}

func resultOf(l algorithms.Limit, s *series, t *tally, clients int) result {
	r := result{
		Limit: l.String(), Requests: s.tally.requests, Denied: t.denied, Share: float64(t.denied) / float64(s.tally.requests),
		Keys: s.keys, Clients: clients, Longest: t.longest.Seconds(),
	}
	for at, requests := range s.minute {
		m, w := worstMinute{time.Unix(at*60, 0).UTC(), requests, t.minute[at]}, &r.Worst
		if cmp.Or(cmp.Compare(m.Denied, w.Denied), cmp.Compare(m.Requests, w.Requests), w.Start.Compare(m.Start)) > 0 {
			*w = m
		}
	}
	return r
}

// isCandidate reports whether a series counts a candidate beside the limit of a policy.
func isCandidate(policy string) bool { return strings.Contains(policy, "~") }
