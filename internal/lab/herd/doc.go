// Command herd simulates crowds of clients that share an exhausted limit, and
// compares kinds of Retry-After:
//
//	make herd
//
// # The simulation
//
// The server is a real ratelimit.Middleware over a real algorithms.Memory, and its
// responses carry real headers. Only time is simulated: the program runs in a bubble
// of testing/synctest, in which each client is a goroutine. Every random number comes
// from a seed, so the same seed gives the same figures. Only the jitter of client.Transport
// and of go-retryablehttp has no seed. synctest needs a *testing.T, so the command runs as
// a test would.
//
// A round trip takes 2 to 20 ms. A client waits from the instant at which it has the
// response.
//
// # The settings
//
//	one success     1 000 clients arrive within 10 ms, and each wants one success
//	shared quota    100 clients begin within a second, and each wants ten successes,
//	                one after the other, without a pause between them
//
// One token bucket of 10/s with a burst of 10 counts all clients together. The ideal is
// 100 s. The shared quota is the setting of arXiv 2510.04516
// ("Rethinking HTTP API Rate Limiting: A Client-Side Approach"), in which up to 100
// clients share a quota. Its figures come from other traffic, so compare orders of
// magnitude only.
//
// A limit needs a burst of at least the requests of one second. Retry-After counts whole
// seconds, so clients that began at one instant and have slots in the same second return
// together. A burst of 1 admits one of them, and slots then take longer than the honest
// minimum. The jitter of client.Transport sets the clients apart.
//
// One account: 1 to 100 workers of one key have twenty calls each, with three attempts, as the SDKs of OpenAI and
// Anthropic have. The workers of a row are clients that wait as told, of go-retryablehttp, or of package client.
//
// # The kinds
//
//	constant 1 s            the client waits 1 s, whatever the server says
//	honest minimum          the server says when the limit has one unit, rounded up
//	minimum + 10 % jitter   the same, and the client adds up to 10 %
//	full jitter             the client ignores the server, and waits a random time below
//	                        0.5 s, 1 s, 2 s, and so on up to 60 s
//	exponential backoff     the same without chance: 0.5 s, 1 s, 2 s, and so on
//	slots                   the server gives each client a slot, because the key is a constant
//	slots of 4 instances    slots, and each request reaches any of four instances,
//	                        which count together and have slots of their own
//	+ client.Transport      each client is a client.Transport
//	Pace                    the same with client.Options.Pace
//	one account             the clients are workers of one account: the first one denied has the honest
//	                        wait, and each further one the next free instant, at most 30 s later
//
// # The columns
//
//	requests per success    at least 1; 1.99 if 10 of 1 000 clients are admitted at
//	                        once, and the others are denied once each
//	denials                 denied requests: 429, or 503 for the capacity of all clients
//	all served              when the last client had its last success
//	peak per second         the most requests in any second except the first
package main
