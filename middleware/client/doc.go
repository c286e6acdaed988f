// Package client, which a minor version may change, sends requests to servers that limit them.
//
//	transport, err := client.NewTransport(nil, nil)
//	api := &http.Client{Transport: transport}
//
// After a 429 or 503 a [Transport] waits, then sends the request again. It can also pace requests, which avoids
// denials, and wait for a limiter of your own; see [Options].
//
//	Status      Meaning                    The Transport          You
//	401         no key, or unknown         returns it             correct the key: no wait helps
//	403         forbidden; GitHub denies   returns it             add it to Statuses for GitHub
//	429, 503    denied or overloaded       waits and retries      if it is returned, wait RetryAfter
//	other 5xx   the server has failed      returns it             retry it if it may run twice
//	none        the connection failed      returns the error      retry it if it may run twice
//
// The Transport returns a 429 or 503 if the wait exceeds the request's deadline or MaxWait, if the attempts
// are used up, if the request cannot be repeated (Options.Retry), or if the denial is final (Options.Final).
//
// # How long it waits
//
// With the zero Options:
//
//	Cause                    Wait                                                    Who waits
//	a stated wait            the wait, up to 14 days, and up to a tenth of it more,  all, see below
//	                         at most 1 s
//	a stated wait below 1 s  the same; if denied again, at least as without a wait   all
//	429 without a wait       about 1 s, 1.5 s, 2.3 s, up to 30 s                     all
//	503 without a wait       about 1 s, 2 s, 4 s, up to 5 s while others succeed,    this request; all
//	                         up to 30 s otherwise, for 2 minutes in sum              with Pace, or after
//	                                                                                 a retry succeeded
//	the sum of all waits     10 minutes (MaxWait), or until the request's deadline
//
// Each 503 without a wait holds all requests for about a second once a retry has succeeded, because it means overload. If your
// server answers 503 at random, set Options.Statuses to 429 alone, and retry a 503 yourself.
//
// "All" are the requests of the same origin and partition, until one of another route succeeds. "About" is 15 % less to 25 % more. A response states a wait in
// Retry-After, otherwise in the fields below.
//
// After the wait, the denied requests leave first, in the order in which they arrived. The Transport sends as many at once
// as the server admitted between its two denials, and the rest one by one, raising the number under way by one with each
// success. If an answer takes longer than 5 s, it sends one more, because a request that hangs must not stop the others.
//
// # One route or all
//
// A denial may concern all requests or one route. So one request of another route may try at once. If it succeeds, only
// the denied routes wait. If it is denied, the next route may try after 1 s, then after 2 s, 4 s and so on, and the others
// wait. A route is a method and a path, in which a segment with a digit counts as an ID and is left out. If the server counts
// by other parts of requests, use Options.Partition.
//
// # Servers that state no wait
//
// The Transport learns. It remembers how long the server denied. If the server denies each second request, requests leave at
// intervals, which become shorter with each success. A 503 holds other requests only if retries after a 503 succeed, because
// otherwise one part of the service may be dead.
//
// A request fails with [ErrWait] at once, and is not sent, if it cannot wait as long as the server has stated. If that is
// longer than MaxWait, one request per MaxWait is sent nevertheless, and its success ends the wait. While a service answers only with a 5xx that states no
// wait, requests wait at most 2 minutes behind others, too.
//
// # Retries, Pace and Limiter
//
// If several of these are in use, a request waits for each of them in turn, in the order of the columns, and MaxWait
// applies to the sum of its waits.
//
//	Options           After a denial  Pace                               Limiter      Next attempt
//	none              all wait        -                                  -            leaves first
//	Pace              all wait        spreads requests over the window   -            leaves first, at the longer interval
//	Limiter           all wait        -                                  takes a unit leaves first, with another unit
//	Pace and Limiter  all wait        spreads requests over the window   takes a unit both
//
// Use Pace if the server advertises its limit: it meets no denial. Use Limiter if you know
// the limit, or if several processes share it. Use both if others spend the same quota.
//
// # Fields that it reads
//
// Package headers reads the limits and the reset from the first of these that a response has:
//
//	Fields                                    Defined by              Example
//	RateLimit, RateLimit-Policy               draft 08 to 11          "default";r=50;t=30
//	the same, with a and w for r and t        the draft's next text   "default";a=50;w=30
//	RateLimit                                 draft 07                limit=100, remaining=50, reset=5
//	RateLimit-Limit, -Remaining, -Reset       draft 00 to 06          100, 50, 5
//	X-RateLimit-Limit, -Remaining, -Reset     GitHub and many others  100, 50, 1795262405
//	X-Rate-Limit-Limit, -Remaining, -Reset    X (Twitter)             100, 50, 1795262405
//	X-RateLimit-Limit-Requests, -Tokens, ...  OpenAI, Groq            100, 50, 6m0s
//	Anthropic-RateLimit-Requests-Limit, ...   Anthropic               100, 50, 2026-11-21T12:01:00Z
//
// Of the waits, it takes Retry-After, otherwise Retry-After-Ms, X-Ms-Retry-After-Ms or X-Amz-Retry-After, otherwise the
// resets above. A Retry-After-Ms that rounds up to Retry-After is more exact, and counts. X-RateLimit-Reset-After and
// X-RateLimit-Retry-After precede X-RateLimit-Reset. A Retry-After or reset of one number means seconds up to 10^9, Unix
// seconds up to 10^11, and Unix milliseconds up to 10^14. A date has a form of RFC 9110, also with UTC or a numeric
// offset, the form of RFC 3339, or the form of JavaScript's Date.toString.
//
// # When not to use it
//
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue: attempts multiply. Set Attempts to
//     1 or switch the other layer off.
//   - A person waits for the answer, and the request has no deadline.
//   - A PUT or DELETE must not run twice, nor a POST that Retry allows. A proxy that answers 503 may have forwarded it: set
//     Statuses to 429.
package client
