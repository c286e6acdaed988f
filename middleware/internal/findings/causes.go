package findings

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
}
