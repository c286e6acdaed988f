// Package client sends requests to servers that limit them: it waits as they ask.
//
//	transport, err := client.NewTransport(nil, nil)
//	if err != nil { ... }
//	api := &http.Client{Transport: transport}
//
// A [Transport] is the RoundTripper of any http.Client. After a 429 or 503 it waits
// as long as the response asks, then sends the request again. It can also keep a pace
// that avoids denials, and wait for a limiter of your own; see [Options].
//
// # What it does with each status
//
//	Status      Meaning                    The Transport                You
//	2xx         admitted                   returns it                   read it
//	3xx         redirected                 returns it                   http.Client follows it
//	401         no key, or unknown         returns it                   correct the key: no wait helps
//	403         forbidden; GitHub denies   returns it                   add it to Statuses for GitHub
//	413         body too large             returns it                   send less
//	429         denied by a limit          waits, and sends it again    if it is returned, wait RetryAfter
//	503         overloaded                 waits, and sends it again    if it is returned, wait RetryAfter
//	other 5xx   the server has failed      returns it                   send it again if it may run twice
//	none        the connection failed      returns the error            send it again if it may run twice
//
// The Transport returns a 429 or 503 unread if the wait exceeds the request's deadline or
// Options.MaxWait, if the attempts or the retry budget are used up, if the request cannot
// be repeated, or if the Limiter fails before the next attempt. [RetryAfter] then returns the wait that the server asks for. Keep the
// work until that time. If there is none, waiting may not help: penstock names no wait
// beside a quota of 0.
//
// # How long it waits
//
// The Transport never retries earlier than the server asks. It adds a random time of up to
// 500 ms, which doubles with each attempt up to 60 s, so that clients do not return
// together. It takes the server's wait from Retry-After, otherwise from RateLimit, otherwise
// from the X-RateLimit fields. Package headers lists the dialects. If a server means
// something else by these fields, correct them in a base RoundTripper.
//
// # When not to use it
//
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue. Two
//     layers multiply their attempts. Switch the other layer's retries off, or set Attempts
//     to 1.
//   - A person waits for the answer, and the request has no deadline. It may wait for ten
//     minutes. Set a deadline.
//   - A PUT or DELETE must not run twice. A proxy that answers 503 may have forwarded it.
//
// Two of its parts have limits of their own:
//
//   - Pace treats a quota as this Transport's own. Processes that share a quota slow down
//     after denials only. A shared Limiter avoids the denials.
//   - Pace believes the server's fields. If they are wrong, use a Limiter with the limits
//     that the server documents.
package client
