// The clients that come near their limits.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A nearKey is a key of admitted requests that left less than a fifth of its limit.
type nearKey struct {
	Key      string // as in an [Offender]
	Admitted uint64 // of these requests, at least
	Last     time.Time
}

// TopNear returns up to n keys of a policy whose admitted requests left less than a fifth of the limit most often within
// the last ten to twenty minutes, the most frequent first.
func (i inside) TopNear(policy string, n int) (keys []nearKey) {
	p := i.m.config.Load().policy(policy)
	if p == nil {
		return nil
	}
	top, _ := p.near.Top(time.Since(i.m.made))
	for _, e := range top[:min(n, len(top))] {
		keys = append(keys, nearKey{i.m.show(e.Key), e.Count - e.Error, i.m.made.Add(e.Last)})
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
			q.tally(a, a.policy.near)
		}
	}
}
