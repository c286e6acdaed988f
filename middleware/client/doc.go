// Package client sends requests to servers that limit them, and waits as the servers ask.
//
//	transport, err := client.NewTransport(nil, nil)
//	if err != nil { ... }
//	api := &http.Client{Transport: transport}
//
// A [Transport] is the RoundTripper of any http.Client. After a 429 or 503 it waits as long as the response asks, then
// sends the request again. It can also keep a pace that avoids denials, and wait for a limiter of your own; see
// [Options].
//
//	Status      Meaning                    The Transport          You
//	2xx, 3xx    admitted                   returns it             read it
//	401         no key, or unknown         returns it             correct the key: no wait helps
//	403         forbidden; GitHub denies   returns it             add it to Statuses for GitHub
//	413         body too large             returns it             send less
//	429, 503    denied or overloaded       waits and retries      if it is returned, wait RetryAfter
//	other 5xx   the server has failed      returns it             retry it if it may run twice
//	none        the connection failed      returns the error      retry it if it may run twice
//
// The Transport returns a 429 or 503 if the wait exceeds the request's deadline or Options.MaxWait, if the attempts or
// the retry budget are used up, or if the request cannot be repeated. [RetryAfter] then returns the wait. Without a
// wait, waiting may not help.
//
// It never retries earlier than the server asks. It adds a random time of up to 500 ms, which doubles with each attempt
// up to 60 s. It takes the wait from Retry-After, otherwise from the fields that package headers lists.
//
// # When not to use it
//
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue. Two layers multiply their
//     attempts. Set Attempts to 1 or switch the other layer off.
//   - A person waits for the answer, and the request has no deadline: it may wait for ten minutes.
//   - A PUT or DELETE must not run twice. A proxy that answers 503 may have forwarded it.
package client
