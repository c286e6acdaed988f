// Package keyfunc says who is counted: a [Key] turns a request into the text under which a limiter counts.
//
//	Your setup                                   Use
//	clients connect directly                     IP(nil)
//	behind your proxy or load balancer           IP(&IPOptions{Trusted: theirs})
//	behind two proxies without fixed addresses   IP(&IPOptions{Hops: 2})
//	earlier middleware has verified the user     User(fromContext)
//	clients send an API key, a bearer token      APIKey("X-API-Key", lookup), APIKey("Authorization", lookup)
//	logins, by the account in the body           JSONField("login", "account"), FormField("login", "account")
//	a gateway sets the tenant in a header        Header("X-Tenant")
//	users, and visitors without account          FirstOf(User(fromContext), IP(nil))
//	users only, visitors go uncounted            Optional(User(fromContext))
//	each route                                   Route(), or RouteIn(mux) around a ServeMux
//	each client on each route                    Join(client, Route())
//	all clients together                         Const("all")
//	anything else                                Custom("kind", f)
//
// RECIPES.md has the settings for the usual proxies.
//
// # The text of a key
//
// A key is kind=value, such as ip=192.0.2.1 or usr=42. [Join] puts '|' between its parts. In values the bytes '%',
// '|', '{', '}' and all outside 0x21 to 0x7E are written %XX. So different values never make the same key, and a key
// is never empty.
//
// # Dangers
//
//   - An identity counts only after verification. A client that may choose its own key has no limit, because each new
//     value is a new, full bucket.
//   - A forwarding header is as trustworthy as its writer. A trusted prefix that contains clients lets them forge
//     their address.
//   - The path of a URL must not be a key: /orders/1, /orders/2 and //orders/1 would be three buckets; see [Route].
//   - A client chooses its part of a FirstOf by omitting the parts before it, and has a bucket in each.
//   - API keys are secrets: no key, error or log line contains them, except a key that an operator types. All other
//     values are stored in the clear.
//
// # Your functions
//
// Functions that you give to this package, or to a Policy of package ratelimit, must be safe for concurrent use, and
// must restore the request's body if they read it.
//
// # Misconfigurations and errors
//
// Constructors do not fail: [Key.Inspect] reports all misconfigurations, and ratelimit.New calls it. The errors of a
// request wrap [ErrMissing] or one of its neighbours. If the method Unavailable() of another error returns true, a
// lookup failed (503). All others are programming errors, or those of a Custom's function (500). No error contains a
// value of the client, except your functions'.
package keyfunc
