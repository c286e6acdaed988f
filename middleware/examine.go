// Which requests are examined for findings, and how.

package ratelimit

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
)

const (
	examinedFirst = 1000
	examinedEvery = 64

	forwardedFor = 16  // forwarded requests in a row
	judgedAfter  = 100 // requests with an unknown or a hidden route, or outcomes without a status
)

// A doctor decides which requests are examined, and has the registration of names.
type doctor struct {
	first atomic.Int32  // requests that are all examined yet
	names *registration // nil: the limiter cannot be compared
}

// examines reports whether to examine a request. It draws a random number,
// because all requests would contend for a counter.
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
			q.m.examineRoute(a.policy, routeIn(q.key(a)), q.http.URL.Path, q.verdict.Allowed)
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

// examineRoute counts served requests with an unknown route, and requests whose
// route is only the prefix under which another router may be mounted.
func (m *Middleware) examineRoute(p *policy, route, path string, served bool) {
	s := p.symptoms
	switch unmatched := route == "unmatched"; {
	case unmatched && served && s.unrouted.Add(1) >= judgedAfter && !s.routed.Load():
		m.find(unknownRoute, p)
		return
	case unmatched:
		return
	}
	s.routed.Store(true)
	s.end(unknownRoute)
	prefix, mounts := mountPoint(route)
	switch {
	case !mounts:
		s.whole.Store(true)
		s.end(hiddenRoute)
	case !strings.HasSuffix(prefix, path) && s.mounted.Add(1) >= judgedAfter && !s.whole.Load():
		m.find(hiddenRoute, p)
	}
}

// routeIn returns the route in a key, or "" if the key has none.
func routeIn(key string) string {
	for part := range strings.SplitSeq(key, "|") {
		if route, ok := strings.CutPrefix(part, "rt="); ok {
			return route
		}
	}
	return ""
}

// mountPoint returns the prefix of the paths that a route matches, if the route is a
// whole subtree of paths: "/api/" of ServeMux, "/api/*" of chi, "/api/{rest...}".
func mountPoint(route string) (prefix string, mounts bool) {
	if rest, ok := strings.CutSuffix(route, "...%7D"); ok {
		return rest[:strings.LastIndexByte(rest, '/')+1], true
	}
	prefix = strings.TrimSuffix(route, "*")
	return prefix, strings.HasSuffix(prefix, "/")
}

// examineNesting looks for a handler that one policy wraps twice, perhaps with
// other Middlewares between.
func (m *Middleware) examineNesting(q *request) {
	if !q.examined {
		return
	}
	outer, ok := q.http.Context().Value(verdictKey{}).(*verdictContext)
	for ; ok; outer, ok = outer.Context.Value(verdictKey{}).(*verdictContext) {
		if !outer.keep() || !sameLimiter(outer.verdict.config.limiter, m.limiter) {
			continue // its handler has returned, or it charges other counts
		}
		for i := range q.parts {
			if p := q.parts[i].policy; outer.verdict.has(p.Name) {
				m.find(chargedTwice, p)
			}
		}
	}
}

// examineOutcome counts the outcomes of a policy without a written status. One
// written status proves that the middleware sees statuses: a handler that then
// writes nothing means 200. It proves nothing in a router that writes some
// answers past the middleware.
func (m *Middleware) examineOutcome(p *policy, e ending) {
	s := p.symptoms
	switch {
	case e.bypassed && e.silent:
		m.find(noStatus, p)
	case e.bypassed:
	case e.written:
		if !s.written.Load() {
			s.written.Store(true)
		}
		s.end(noStatus)
	case e.silent && !s.written.Load() && s.silent.Add(1) >= judgedAfter:
		m.find(noStatus, p)
	}
}

// bypasses reports whether a writer belongs to a router that may answer outside of
// the middleware: gin's handlers write to gin's own writer, and echo turns errors into
// answers after its middleware has returned.
func bypasses(w http.ResponseWriter) bool {
	switch w.(type) {
	case interface{ WriteHeaderNow() }: // gin
		return true
	case interface {
		Before(func())
		After(func())
	}: // echo
		return true
	}
	return false
}
