// Package client sends requests to servers that limit them: it waits as they ask.
//
//	transport, err := client.NewTransport(nil, nil)
//	if err != nil { ... }
//	http := &http.Client{Transport: transport}
//
// A [Transport] is the RoundTripper of any http.Client. After a 429 or 503 it waits
// as long as the response asks, then sends the request again. It can also keep a pace
// that avoids denials, and wait for a limiter of your own; see [Options].
//
// # What it does with each status
//
//	Status      Meaning                          The Transport                          You
//	2xx         admitted                         returns it                             -
//	3xx         elsewhere, or later              returns it; http.Client follows it     -
//	401         key missing or unknown           returns it                             correct the key: no wait helps
//	403         forbidden; on GitHub a denial    returns it                             on GitHub, add it to Statuses
//	408, 5xx    the server's trouble             returns it                             retry what may run twice, seldom
//	413         body too large                   returns it                             send less, or wait RetryAfter
//	429         denied by a limit                waits, sends it again                  if it comes back: wait RetryAfter
//	503         overloaded, or down              waits, sends it again                  the same
//	no status   connection failed                returns the error                      the request may have run: look first
//
// A 429 or 503 comes back to you unread if the wait exceeds the request's deadline or
// Options.MaxWait, if the attempts or the retry budget are used up, or if the request
// cannot be repeated. [RetryAfter] returns the wait that it asks for. Put the work aside
// until then. Without a wait, as beside a quota of 0, no wait helps.
//
// # How long it waits
//
// The wait is the server's hint plus a random time of up to 500 ms, which doubles with
// each attempt up to 60 s. The server's hint is a floor: the Transport never retries
// earlier. It takes the hint from Retry-After, otherwise from RateLimit, otherwise from
// X-RateLimit-Reset and its relatives. Package headers lists the dialects. A server that
// means something else by these fields needs a base RoundTripper that corrects them.
//
// # When not to use it
//
//   - Someone waits for the answer: set a deadline on the request. Without one, a
//     request may wait for ten minutes.
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue. Two
//     layers multiply their attempts. Set the other layer's retries to 0, or Attempts to 1.
//   - A request must not run twice, and its method says that it may. A PUT or DELETE
//     whose 503 comes from a proxy may have run.
//   - The requests are spread over many processes that share one quota. Each Transport
//     paces alone, as if the quota were its own. Use a shared Limiter.
//   - The server lies about its limits. Set Limiter to what it documents, without Pace.
package client
