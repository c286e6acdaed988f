// Which findings the requests of a Middleware show.

package ratelimit

import (
	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/findings"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// Findings returns the present findings, without data of clients. RUNBOOK.md says what each means, and when it begins
// and ends. The findings of Options.Overrides, if it has a method Findings, follow; the middleware logs all others.
func (m *Middleware) Findings() []algorithms.Finding {
	var all []algorithms.Finding
	for _, p := range m.config.Load().policies {
		all = p.findings.Append(all)
	}
	if table, ok := m.overrides.(interface{ Findings() []algorithms.Finding }); ok {
		for _, f := range table.Findings() {
			if f.Policy == "" || m.config.Load().policy(f.Policy) != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

func (q *request) examine() {
	sampled := q.m.finder.Samples()
	if sampled {
		q.examineAddress()
	}
	// The key of a guess is an address, whatever the policy's key is.
	decided := len(q.checks) > 0 && q.refusal.err == nil && q.unknown == nil
	s := findings.Sight{Sampled: decided && sampled}
	var outer *verdictContext
	slowed := false
	if s.Sampled {
		s.Header, s.Path = q.http.Header, q.http.URL.Path
		slowed = len(q.guesser.address) > 0 && q.m.guesses.Slowed(string(q.guesser.address))
		if q.handled { // a second Check is intended
			outer, _ = q.http.Context().Value(verdictKey{}).(*verdictContext)
		}
	}
	for i := range q.parts {
		a := &q.parts[i]
		s.UnknownTier = a.unknownTier
		burst := a.limit.Burst() // 0 of the limit Nobody
		s.AboveBurst = decided && !a.spared && !q.verdict.Policies[i].Decision.Allowed && burst > 0 && a.cost > burst
		if s.Sampled {
			s.Slowed = slowed && len(a.policy.challenges) > 0
			s.Nested, s.Key = outer != nil && q.nested(outer, a.policy.Name), q.key(a)
		}
		a.policy.findings.See(&s)
	}
}

// examineAddress shows each policy where the request had its client's address:
// also of exempt and refused requests, because the address decides on them, too.
func (q *request) examineAddress() {
	for _, p := range q.config.policies {
		p.findings.SeeAddress(p.Key.OriginOf(&q.http), q.http.Request)
	}
}

// nested reports whether a policy of this name has charged the request already, in outer
// or in a Middleware outside of it that has the same limiter.
func (q *request) nested(outer *verdictContext, policy string) bool {
	for ok := true; ok; outer, ok = outer.Context.Value(verdictKey{}).(*verdictContext) {
		if outer.keep() && wrapped.Same(outer.verdict.config.limiter, q.m.limiter) {
			if _, asked := outer.verdict.Policy(policy); asked {
				return true
			}
		}
	}
	return false
}
