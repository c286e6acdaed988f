// Package keyfunc says who is counted: a [Key] turns a request into the text
// under which a limiter counts.
//
//	Your setup                                   Use
//	clients connect directly                     IP(nil)
//	behind a proxy or load balancer of yours     IP(&IPOptions{Trusted: theirs})
//	the same, with X-Real-IP                     IP(&IPOptions{Trusted: theirs, Header: "X-Real-IP"})
//	behind two proxies without fixed addresses   IP(&IPOptions{Hops: 2})
//	behind a proxy that uses a Unix socket       IP(&IPOptions{TrustUnix: true})
//	the connection's peer, also a proxy          Peer()
//	earlier middleware has verified the user     User(fromContext)
//	clients send an API key                      APIKey("X-API-Key", lookup)
//	clients send a bearer token                  APIKey("Authorization", lookup)
//	keys are in a database                       APIKey("X-API-Key", Cached(lookup, 10_000, time.Minute))
//	logins, by the account in the body           JSONField("login", "account"), FormField("login", "account")
//	a gateway sets the tenant in a header        Header("X-Tenant")
//	users, and visitors without account          FirstOf(User(fromContext), IP(nil))
//	users only, visitors go uncounted            Optional(User(fromContext))
//	each route, chi                              Route(), anywhere in the router
//	each route, ServeMux                         Route() in its handlers, RouteIn(mux) around it
//	the same in gorilla, echo, gin, httprouter   Route(), with one line of yours
//	each client on each route                    Join(client, Route()), the client first
//	all clients together                         Const("all")
//	anything else                                Custom("kind", f)
//
// # Proxies
//
// The smaller setting names one proxy too few, or one entry too few.
//
//	Proxy                       Right                              The next smaller one
//	nginx, proxy_set_header     Trusted: nginx's address           IP(nil): all clients are nginx
//	HAProxy, option forwardfor  Trusted: HAProxy's address         IP(nil): all clients are HAProxy
//	Envoy, use_remote_address   Trusted: Envoy's addresses         IP(nil): all clients are Envoy
//	AWS ALB                     Trusted: the subnets of the ALB    IP(nil): a client is a node of the ALB
//	Google's load balancer      Hops: 2, it appends itself         Hops 1, or Trusted its ranges: all clients are its own address
//	Cloudflare                  Trusted: its published ranges      IP(nil): a client is one of its servers
//	a CDN before a balancer     Trusted: ranges of both, or Hops 2 Hops 1: a client is a server of the CDN
//
// Findings PS113 and PS115 of package ratelimit report settings that have become
// wrong.
//
// # The text of a key
//
// A key is kind=value, such as ip=192.0.2.1 or usr=42. [Join] puts '|' between
// its parts. In values the bytes '%', '|', '{', '}' and all outside 0x21 to
// 0x7E are written %XX. So different values never make the same key, and a key
// is never empty. [Text] writes one.
//
// # Identities
//
// [User] and [APIKey] yield an [Identity]. Both write usr=<ID>: a limiter
// counts the account, however many keys it has. Policies with the same Key look
// an identity up once per [Request].
//
// # Dangers
//
//   - An identity counts only after verification. A client that may choose its
//     own key has no limit: each new value is a new, full bucket. Use Header
//     only for values that a trusted gateway sets or overwrites.
//   - A forwarding header is as trustworthy as its writer. IP reads only one,
//     and only from trusted peers. Trust only the addresses of your proxies: a
//     prefix that contains clients lets them forge their address.
//   - Hops trusts every peer: a client that reaches the server without your
//     proxies forges its address.
//   - The path of a URL must not be a key: /orders/1, /orders/2 and //orders/1
//     would be three buckets. [Route] and [RouteIn] take the template.
//   - A client chooses its part of a FirstOf by omitting the parts before it,
//     and has a bucket in each.
//   - API keys are secrets: no key, error or log line contains them, except a key
//     that an operator types. All other values are stored in the clear.
//
// # Your functions
//
// Functions that you give to this package, or to a Policy of package ratelimit,
// must be safe for concurrent use. They must not read the request's body,
// unless they restore it.
//
// # Misconfigurations and errors
//
// Constructors do not fail: [Key.Inspect] reports all misconfigurations, and
// ratelimit.New calls it. A request has one of these errors:
//
//	Error                           Cause                              Answer of package ratelimit
//	wraps ErrMissing                the request lacks the identity     401
//	wraps ErrMissing, ErrMalformed  it lacks the value of a Custom     400
//	wraps ErrNotCounted             an Optional lacks its identity     the policy does not apply
//	wraps ErrMalformed              the client sent a malformed value  400
//	wraps ErrUnknown                the lookup does not know the key   401, then 429
//	its Unavailable() returns true  the lookup failed                  503
//	any other                       a programming error, or Custom's   500
//
// No error contains a value of the client, except your functions'.
package keyfunc
