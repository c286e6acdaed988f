// Package findings finds misconfigurations that only requests show.
//
// A finding begins when a request shows its cause, and ends when no request has
// shown it for an hour, or at once where requests prove the opposite (a known
// route, a request that was not forwarded, a written status except in routers that
// answer past the middleware, clients behind proxies). After an Update it ends unless a request shows the
// cause again.
package findings

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Hold is how a request held units of a concurrent limit.
type Hold struct {
	Lasted time.Duration
	Timed  bool // by http.TimeoutHandler, directly inside the middleware
}

// SeeHold counts how long requests have held units of a concurrent limit. If two of three return within
// microseconds, the middleware returns before the handler runs.
func (p *Policy) SeeHold(h Hold) {
	if h.Timed {
		p.found(timeoutInside)
	}
	if h.Lasted >= instant {
		if p.held.Add(1)*2 > p.instants.Load() {
			p.ended(instantHolds)
		}
		return
	}
	if n := p.instants.Add(1); n >= judgedAfter && n >= p.held.Load()*2 {
		p.found(instantHolds)
	}
}

// A Sight is what a request shows of one policy.
type Sight struct {
	UnknownTier bool // its identity has a tier that the policy does not know
	AboveBurst  bool // it was denied for ever, because it cost more than the burst

	// The rest is meaningful in a sample of the decided requests only.
	Sampled bool
	Nested  bool // a policy of this name has charged it in another Middleware
	Slowed  bool // its API key is valid, and its address sent unknown ones
	Header  http.Header
	Path    string
	Key     string // of the policy; See does not keep its bytes
}

// See looks for causes of findings.
func (p *Policy) See(s *Sight) {
	if s.UnknownTier {
		p.found(unknownTier)
	}
	if s.AboveBurst {
		p.found(costAboveBurst)
	}
	if !s.Sampled {
		return
	}
	if s.Nested {
		p.found(chargedTwice)
	}
	if s.Slowed {
		p.found(slowedAddress)
	}
	if !p.repeated.Load() {
		p.seeKey(s.Key)
	}
	if p.byPeer {
		p.seeForwarding(len(s.Header["X-Forwarded-For"]) > 0 || len(s.Header["Forwarded"]) > 0)
	}
	if p.routes {
		p.seeRoute(s)
	}
}

// seeKey remembers the first keys. One that comes again proves that the policy counts.
func (p *Policy) seeKey(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hash := maphash.String(seed, key)
	switch {
	case slices.Contains(p.keys, hash):
		p.keys = nil
		p.repeated.Store(true)
		p.ended(freshKeys)
	case len(p.keys) < freshAfter:
		p.keys = append(p.keys, hash)
	}
	if len(p.keys) == freshAfter {
		p.found(freshKeys)
	}
}

// seeForwarding counts forwarded requests.
func (p *Policy) seeForwarding(forwarded bool) {
	if !forwarded {
		p.forwarded.Store(0)
		if p.direct.Add(1) >= forwardedFor {
			p.ended(untrustedProxy)
		}
		return
	}
	p.direct.Store(0)
	if p.forwarded.Add(1) >= forwardedFor {
		p.found(untrustedProxy)
	}
}

// seeRoute counts requests with an unknown route, also denied ones: a small limit
// denies nearly all requests that share one key. It also counts requests whose
// route is only the prefix under which another router may be mounted.
func (p *Policy) seeRoute(s *Sight) {
	route := routeIn(s.Key)
	p.remember(route)
	if route == "unmatched" {
		if p.unrouted.Add(1) >= judgedAfter && !p.routed.Load() {
			p.found(unknownRoute)
		}
		return
	}
	p.routed.Store(true)
	p.ended(unknownRoute)
	prefix, mounts := mountPoint(route)
	switch {
	case !mounts:
		p.whole.Store(true)
		p.ended(hiddenRoute)
	case !strings.HasSuffix(prefix, s.Path) && p.mounted.Add(1) >= judgedAfter && !p.whole.Load():
		p.found(hiddenRoute)
	}
}

// maxRoutes bounds the remembered routes of a policy.
const maxRoutes = 100

// remember remembers a route of the policy's keys.
func (p *Policy) remember(route string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if route != "" && len(p.known) < maxRoutes && !slices.Contains(p.known, "rt="+route) {
		p.known = append(p.known, "rt="+route)
	}
}

// Routes returns the routes that sampled requests had, as parts of keys.
func (p *Policy) Routes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.known)
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

// An Ending is how a handler ended. It may be neither written nor silent: after a
// panic, a hang-up or a deadline, it is unknown whether the handler would have
// written a status.
type Ending struct {
	Written bool // the handler wrote the status
	Silent  bool // it returned without writing one
	Writer  http.ResponseWriter
}

// SeeEnding counts the endings of a policy's requests without a written status. One
// written status proves that the middleware sees statuses: a handler that then
// writes nothing means 200. It proves nothing in a router that writes some answers
// past the middleware.
func (p *Policy) SeeEnding(e Ending) {
	switch bypassed := bypasses(e.Writer); {
	case bypassed && e.Silent:
		p.found(noStatus)
	case bypassed:
	case e.Written:
		if !p.written.Load() {
			p.written.Store(true)
		}
		p.ended(noStatus)
	case e.Silent && !p.written.Load() && p.silent.Add(1) >= judgedAfter:
		p.found(noStatus)
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
