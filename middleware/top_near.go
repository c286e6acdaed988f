// The clients that come near their limits.

package ratelimit

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A NearKey is a key of admitted requests that left less than a fifth of its limit; see [PolicyVerdict.Near].
type NearKey struct {
	// Key and Plain are as in an [Offender].
	Key   string
	Plain string `json:"-"`

	// Admitted counts these requests. It is at most Error too high, 0 while few keys are near.
	Admitted, Error uint64

	// Last is the last of these requests.
	Last time.Time
}

// TopNear returns up to n keys of a policy whose admitted requests left less than a fifth of the limit most often within
// the last ten to twenty minutes, the most frequent first, or nil. They are the clients that a lower limit would deny.
func (m *Middleware) TopNear(policy string, n int) []NearKey {
	p := m.config.Load().policy(policy)
	if p == nil {
		return nil
	}
	top, _ := p.near.Top(time.Since(m.made))
	var keys []NearKey
	for _, e := range top[:min(max(0, n), len(top))] {
		keys = append(keys, NearKey{Key: m.show(e.Key), Plain: e.Key, Admitted: e.Count, Error: e.Error, Last: m.made.Add(e.Last)})
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
