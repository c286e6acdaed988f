// The causes, and what a finding says of each.

package findings

import "slices"

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
	shortBurst
	freshKeys
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
	freshKeys: {
		"PS118", "Of a thousand examined requests, none had a key that another one had before: the policy limits nothing.",
		"Correct the policy's Key: it takes part of each request, such as its ID. If so many clients send one request each, ignore this finding.",
	},
	balancerCounted: {
		"PS115", "An address that counts as one client has many different entries to its left in the forwarding header: it is most likely a proxy of yours.",
		"Add the proxy to keyfunc.IPOptions.Trusted, or raise Hops by one. Google's load balancers append their own address, and a CDN is one more proxy. " +
			"If most of your requests come from one client's own proxy, ignore this finding.",
	},
	shortBurst: {
		"PS117", "The burst comes back within a second, and denied clients wait for whole seconds: they can use the burst per second, not the rate.",
		"Raise the burst to the units of a second, or join headers.Milliseconds to Options.Headers for clients that read milliseconds.",
	},
}

// Codes returns the codes of all findings, sorted.
func Codes() []string {
	var all []string
	for i := range texts {
		all = append(all, texts[i].code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
