// Package keyfunc says who is counted: a [Key] turns a request into the text
// under which a limiter keeps its state.
//
//	Your setup                                  | Use
//	--------------------------------------------|------------------------------------------------
//	clients connect directly                    | IP(nil)
//	behind a proxy or load balancer of yours    | IP(&IPOptions{Trusted: theirs})
//	the same, with one address in X-Real-IP etc | IP(&IPOptions{Trusted: theirs, Header: "X-Real-IP"})
//	behind two proxies without fixed addresses  | IP(&IPOptions{Hops: 2})
//	the peer of the connection, also of a proxy | Peer()
//	earlier middleware has verified the user    | User(fromContext)
//	clients send an API key                     | APIKey("X-API-Key", lookup)
//	clients send a bearer token                 | APIKey("Authorization", lookup)
//	a gateway sets the tenant in a header       | Header("X-Tenant")
//	users, and visitors without an account      | FirstOf(User(fromContext), IP(nil))
//	each route for itself, chi                  | Route(), anywhere in the router
//	each route for itself, ServeMux             | Route() in its handlers, RouteIn(mux) around it
//	the same in gorilla, echo, gin, httprouter  | Route(), with one line of yours
//	each client on each route                   | Join(client, Route()), the client first
//	all clients together                        | Const("all")
//	anything else                               | Custom("kind", f)
//
// # The text of a key
//
// A key is kind=value, such as ip=192.0.2.1 or usr=42, so that a header that
// says "192.0.2.1" is not that address. [Join] puts '|' between its parts. In
// values the bytes '%', '|', '{', '}' and all outside 0x21 to 0x7E are written
// %XX. So different values never make the same key, a key is never empty, and
// it holds neither spaces nor the braces of a Redis Cluster hash tag.
//
// # Identities
//
// [User] and [APIKey] yield an [Identity]. Both write usr=<ID>: a limiter
// counts the account, however many keys it has. The Tier selects the limits of
// the account's plan.
//
// A [Request] remembers identities. Several policies with the same Key look an
// identity up once.
//
// # Dangers
//
//   - An identity counts only after verification. A client that may choose its
//     own key has no limit: each new value is a new, full bucket. [Header] is
//     for values that a trusted gateway sets or overwrites; [APIKey] looks the
//     key up; [User] is for users whom earlier middleware has verified.
//   - A forwarding header is as trustworthy as its writer. [IP] reads exactly
//     one, which the configuration names, and only from trusted peers. Trust
//     the addresses of your proxies and no others: a prefix that contains
//     clients lets these clients forge their address.
//   - Hops trusts every peer. Use it only if every request passes your proxies:
//     a client that reaches the server directly forges its address.
//   - The path of a URL must not be a key: /orders/1, /orders/2 and //orders/1
//     would be three buckets. [Route] and [RouteIn] take the template.
//   - Outside of every router [Route] knows no route, and all requests share
//     the one bucket rt=unmatched.
//   - A client chooses which part of a [FirstOf] applies to it by leaving out
//     the parts before it, and has a bucket in each.
//   - API keys are secrets. They enter no key, no error and no log line of this
//     project. All other values of a key are stored in the clear.
//
// # Your functions
//
// The functions that you give to [APIKey], [User] and [Custom], and to a Policy of
// package ratelimit, must be safe for concurrent use. They must not read the body
// of the request, unless they restore it.
//
// # Misconfigurations and errors
//
// Constructors do not fail: a Key carries its misconfigurations, and
// [Key.Inspect] reports all of them. The constructor of a middleware calls it
// at startup. A request has one of these errors:
//
//	Error                          | Cause                             | Answer of package ratelimit
//	-------------------------------|-----------------------------------|----------------------------
//	wraps ErrMissing               | the request lacks the identity    | 401
//	wraps ErrMissing, ErrMalformed | it lacks the value of a Custom    | 400
//	wraps ErrMalformed             | the client sent a malformed value | 400
//	wraps ErrUnknown               | the lookup does not know the key  | 401, and 429 after several
//	its Unavailable() returns true | the lookup failed                 | 503
//	any other                      | a programming error, or Custom's  | 500
//
// No error contains a value that a client has sent, except errors that your own
// functions make.
package keyfunc
