// The clients that come near their limits.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/inside"
)

// topNear returns the keys of a policy that come near their limits most often.
func (m *Middleware) topNear(policy string, n int) []inside.NearKey {
	p := m.config.Load().policy(policy)
	if p == nil {
		return nil
	}
	top, _ := p.near.Top(time.Since(m.made))
	var keys []inside.NearKey
	for _, e := range top[:min(max(0, n), len(top))] {
		keys = append(keys, inside.NearKey{Key: m.show(e.Key), Plain: e.Key, Admitted: e.Count, Error: e.Error, Last: m.made.Add(e.Last)})
	}
	return keys
}

// Near reports whether the policy admitted the request, and less than a fifth of its limit is left. It is false if the
// limiter did not decide.
func (p *PolicyVerdict) Near() bool {
	d := &p.Decision
	return d.Allowed && d.Source != algorithms.Undecided && d.Remaining < (p.Limit.Step().Burst+4)/5
}

// countNear remembers the keys that come near their limits.
func (q *request) countNear() {
	for i := range q.verdict.Policies {
		if q.verdict.Policies[i].Near() {
			a := &q.parts[i]
			q.tally(a, a.policy.near, q.began())
		}
	}
}
