// Package keyfunc says who is counted: a [Key] turns a request into the text
// under which a limiter keeps its state.
//
//	Your setup                                  | Use
//	--------------------------------------------|------------------------------------------------
//	clients connect directly                    | IP(nil)
//	behind a proxy or load balancer of yours    | IP(&IPOptions{Trusted: theirs})
//	the same, with one address in X-Real-IP etc | IP(&IPOptions{Trusted: theirs, Header: "X-Real-IP"})
//	clients send an API key                     | APIKey("X-API-Key", secret, known)
//	clients send a bearer token                 | APIKey("Authorization", secret, known)
//	earlier middleware has verified the user    | User(fromContext)
//	a gateway sets the tenant in a header       | Header("X-Tenant")
//	users, and visitors without an account      | FirstOf(User(fromContext), IP(nil))
//	each route for itself, chi                  | Route(), anywhere in the router
//	each route for itself, ServeMux             | Route() in its handlers, RouteIn(mux) around it
//	each client on each route                   | Join(client, Route()), the client first
//	everybody together                          | Const("all")
//	anything else                               | Custom("kind", f)
//
// # What a key looks like
//
// A key is kind=value, such as ip=192.0.2.1 or usr=42, so that a header that
// says "192.0.2.1" is not that address. [Join] puts '|' between its parts. In
// values the bytes '%', '|', '{', '}' and all outside 0x21 to 0x7E are written
// %XX. So different values never make the same key, a key is never empty, and
// it holds neither spaces nor the braces of a Redis Cluster hash tag.
//
// # What is dangerous
//
//   - An identity counts only when somebody has verified it. Whoever may choose
//     his own key has no limit: each new value is a new, full bucket. [Header] is
//     for what a trusted gateway sets or overwrites; [APIKey] asks whether the
//     key is known; [User] is for what was verified earlier.
//   - A forwarding header is worth as much as whoever wrote it. [IP] reads
//     exactly one, which the configuration names, and only from trusted peers.
//     Trust the addresses of your proxies and no others: a prefix that contains
//     clients lets these clients forge their address.
//   - The path of a URL must not be a key: /orders/1, /orders/2 and //orders/1
//     would be three buckets. [Route] and [RouteIn] take the template.
//   - Outside of every router [Route] knows no route, and all requests share
//     the one bucket rt=unmatched.
//   - A client chooses which part of a [FirstOf] applies to it by leaving out
//     the parts before it, and has a bucket in each.
//   - API keys are secrets: they are stored as a keyed hash. Whatever else goes
//     into a key is stored in the clear.
//
// # Mistakes and errors
//
// Constructors do not fail: a Key carries the mistakes of its configuration,
// and [Key.Validate] reports all of them, as the constructor of a middleware
// does at start-up. At run time a request without the identity is
// [ErrMissing], one that is not well-formed [ErrMalformed], a key that nobody
// issued [ErrUnknown]. No error contains a value that a client has sent, but
// for errors that a function given to [Custom] makes itself.
//
// Keys are safe for concurrent use, as long as the functions that they are
// made of are.
package keyfunc
