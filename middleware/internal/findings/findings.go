// Package findings finds misconfigurations that only requests show.
//
// A finding begins when a request shows its cause, and ends when no request has
// shown it for an hour, or at once where requests prove the opposite (a known
// route, a request that was not forwarded, a written status except in routers that
// answer past the middleware, clients behind proxies). After an Update it ends unless a request shows the
// cause again.
package findings

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// A cause is the misconfiguration that a finding reports.
type cause uint8

const (
	untrustedProxy cause = iota
	unknownRoute
	chargedTwice
	costAboveBurst
	unknownTier
	noStatus
	hiddenRoute
	instantHolds
	timeoutInside
	slowedAddress
	untrustedPeer
	peerWithoutAddress
	noHeader
	fewHops
	unreadable
	balancerCounted
	causes
)

// setPattern is the remedy in routers whose routes keyfunc.Route does not know.
const setPattern = "In another router, set the request's pattern before the middleware. " +
	"gorilla: r.Pattern, _ = mux.CurrentRoute(r).GetPathTemplate(). echo: c.Request().Pattern = c.Path(). " +
	"gin: c.Request.Pattern = c.FullPath(). httprouter: r.Pattern = path, where you register the path."

var texts = [causes]struct{ code, sentence, remedy string }{
	untrustedProxy: {
		"PS101", "Requests carry a forwarding header, and the policy's key trusts no proxy: all clients behind a proxy count as one.",
		"Name your proxies in Options.ClientIP. Without proxies, ignore this finding: the header is not trusted.",
	},
	unknownRoute: {
		"PS104", "The route of no request is known: all requests share the key rt=unmatched.",
		"Mount the middleware in the chi router, or around the handlers of a ServeMux; or use keyfunc.RouteIn around the ServeMux. " + setPattern,
	},
	chargedTwice: {
		"PS105", "A request is charged twice: it has met a policy of this name before.",
		"Wrap each handler once, or give the inner policy another name.",
	},
	costAboveBurst: {
		"PS107", "A request cost more than the burst, and is denied for ever.",
		"Clamp the result of the policy's Cost, or raise the burst.",
	},
	unknownTier: {
		"PS109", "An identity has a tier that the policy's Tiers lacks: Limit holds for it.",
		"Add the tier to Policy.Tiers, or correct the tier that the lookup returns.",
	},
	noStatus: {
		"PS110", "ChargeIf does not see the statuses of responses: requests without one counted as 200.",
		"The router answers past the middleware. gin: call w.WriteHeader(c.Writer.Status()) after c.Next(). " +
			"echo: call c.Error(err) inside the middleware. fiber: its adaptor returns before the handler has answered, so ChargeIf cannot work. " +
			"Elsewhere use Cost and Settle. See Policy.ChargeIf.",
	},
	hiddenRoute: {
		"PS111", "The route of every request is the prefix of a subtree: all routes of a router behind it share one key.",
		setPattern + " If no router is behind the prefix, ignore this finding.",
	},
	timeoutInside: {
		"PS116", "http.TimeoutHandler is inside of a Concurrent limit: at its timeout the units come back, although the handler goes on.",
		"Put http.TimeoutHandler outside of the middleware.",
	},
	instantHolds: {
		"PS112", "Units of a Concurrent limit return within microseconds: the limit holds nothing.",
		"The adaptor of the framework returns before the handler runs, e.g. fiber's. There use rate limits only, or call the limiter yourself. " +
			"If your handlers are that fast, use a rate limit: it costs less.",
	},
	slowedAddress: {
		"PS114", "An address that sent unknown API keys sends valid ones, too: keys that are new from it wait for their turn.",
		"A program behind that address has an old key, or tries keys: who?ip=ADDRESS of package console says which address. " +
			"If it is the address of your own proxy, name the proxy in Options.ClientIP.",
	},
	untrustedPeer: {
		"PS113", "Most requests are forwarded by a peer that is no trusted proxy: each such peer counts as one client.",
		"Add the present addresses of your proxies to keyfunc.IPOptions.Trusted.",
	},
	peerWithoutAddress: {
		"PS113", "Most requests are forwarded through a Unix socket, which is not trusted: all clients share the key ip=unknown.",
		"Set keyfunc.IPOptions.TrustUnix.",
	},
	noHeader: {
		"PS113", "Most requests of your proxies lack the forwarding header that IPOptions names: each proxy counts as one client.",
		"Name the header that your proxies set in keyfunc.IPOptions.Header, or let them set it. " +
			"nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for. HAProxy: option forwardfor.",
	},
	fewHops: {
		"PS113", "Most requests have fewer entries in the forwarding header than IPOptions.Hops says: these clients share the key ip=unknown.",
		"Set keyfunc.IPOptions.Hops to the number of your proxies that append an entry.",
	},
	unreadable: {
		"PS113", "Most requests have a forwarding header in which the entry of your own proxy is no address: these clients share the key ip=unknown.",
		"Let the proxy write the client's address, and name its header in keyfunc.IPOptions.Header.",
	},
	balancerCounted: {
		"PS115", "An address that counts as one client has many different entries to its left in the forwarding header: it is most likely a proxy of yours.",
		"Add the proxy to keyfunc.IPOptions.Trusted, or raise Hops by one. Google's load balancers append their own address, and a CDN is one more proxy. " +
			"If most of your requests come from one client's own proxy, ignore this finding.",
	},
}

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
	if s.Sampled || s.UnknownTier || s.AboveBurst {
		p.see(s)
	}
}

func (p *Policy) see(s *Sight) {
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
	if p.byPeer {
		p.seeForwarding(len(s.Header["X-Forwarded-For"]) > 0 || len(s.Header["Forwarded"]) > 0)
	}
	if p.routes {
		p.seeRoute(s)
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
