// The requests that are examined for findings.

package ratelimit

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

const (
	examinedFirst = 1000
	examinedEvery = 64

	forwardedFor = 16  // forwarded requests in a row
	judgedAfter  = 100 // requests with an unknown route, or outcomes without a status
)

// A doctor decides which requests are examined, and has the registration of names.
type doctor struct {
	first atomic.Int32  // requests that are all examined yet
	names *registration // nil: the limiter cannot be compared
}

// examines reports whether to examine a request. Chance decides instead of a
// counter, which all requests would write to.
func (d *doctor) examines() bool {
	if d.first.Load() > 0 {
		d.first.Add(-1)
		return true
	}
	return rand.Uint32()%examinedEvery == 0
}

// examine looks for causes of findings in a request that has its verdict.
func (q *request) examine() {
	for i := range q.parts {
		if q.parts[i].unknownTier {
			q.m.find(unknownTier, q.parts[i].policy)
		}
	}
	if q.examined = q.m.doctor.examines(); !q.examined || q.refusal.err != nil || q.unknown != nil {
		return // the key of a guess is an address, whatever the policy's key is
	}
	h := q.http.Header
	forwarded := len(h["X-Forwarded-For"]) > 0 || len(h["Forwarded"]) > 0
	for i := range q.parts {
		if a := &q.parts[i]; a.denied == 0 {
			q.m.examineForwarding(a.policy, forwarded)
			q.m.examineRoute(a.policy, q.key(a), q.verdict.Allowed)
		}
	}
}

// examineForwarding counts forwarded requests whose key takes the peer's address.
func (m *Middleware) examineForwarding(p *policy, forwarded bool) {
	s := p.symptoms
	switch {
	case !p.byClient || !m.noProxies:
	case !forwarded:
		s.forwarded.Store(0)
		if s.direct.Add(1) >= forwardedFor {
			s.end(untrustedProxy)
		}
	default:
		s.direct.Store(0)
		if s.forwarded.Add(1) >= forwardedFor {
			m.find(untrustedProxy, p)
		}
	}
}

// examineRoute counts served requests with an unknown route.
func (m *Middleware) examineRoute(p *policy, key string, served bool) {
	const part = "rt=unmatched"
	s := p.symptoms
	switch {
	case !strings.HasPrefix(key, part) && !strings.Contains(key, "|"+part):
		s.routed.Store(true)
		s.end(unknownRoute)
	case served && s.unrouted.Add(1) >= judgedAfter && !s.routed.Load():
		m.find(unknownRoute, p)
	}
}

// examineNesting looks whether a handler is wrapped twice by one policy, perhaps with
// other Middlewares between.
func (m *Middleware) examineNesting(q *request) {
	if !q.examined {
		return
	}
	outer, ok := q.http.Context().Value(verdictKey{}).(*verdictContext)
	for ; ok; outer, ok = outer.Context.Value(verdictKey{}).(*verdictContext) {
		if !sameLimiter(outer.verdict.config.limiter, m.limiter) {
			continue // it charges other counts
		}
		for i := range q.parts {
			if p := q.parts[i].policy; outer.verdict.has(p.Name) {
				m.find(chargedTwice, p)
			}
		}
	}
}

// examineOutcome counts the outcomes of a policy without a written status. One
// written status proves that the middleware sees them: handlers that write nothing
// mean 200.
func (m *Middleware) examineOutcome(p *policy, e ending) {
	s := p.symptoms
	switch {
	case e.written:
		if !s.written.Load() {
			s.written.Store(true)
		}
		s.end(noStatus)
	case e.silent && !s.written.Load() && s.silent.Add(1) >= judgedAfter:
		m.find(noStatus, p)
	}
}
