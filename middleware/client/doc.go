// Package client sends requests to servers that limit them.
//
//	transport, err := client.NewTransport(nil, nil)
//	api := &http.Client{Transport: transport}
//
// After a 429 or 503 a [Transport] waits as long as the response asks, then sends the request again. Other requests go
// on. It can also keep a pace, which holds all and avoids denials, and wait for a limiter of your own; see [Options].
//
//	Status      Meaning                    The Transport          You
//	401         no key, or unknown         returns it             correct the key: no wait helps
//	403         forbidden; GitHub denies   returns it             add it to Statuses for GitHub
//	429, 503    denied or overloaded       waits and retries      if it is returned, wait RetryAfter
//	other 5xx   the server has failed      returns it             retry it if it may run twice
//	none        the connection failed      returns the error      retry it if it may run twice
//
// The Transport returns a 429 or 503 if the wait exceeds the request's deadline or MaxWait, if the attempts or
// RetryShare are used up, or if the request cannot be repeated. A POST or PATCH needs Options.Retry, and a body needs
// GetBody.
//
// It waits for Retry-After, otherwise as the fields ask that package headers lists. To that it adds a random time of up
// to 500 ms, which doubles with each attempt up to 60 s.
//
// # When not to use it
//
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue: attempts multiply. Set Attempts to
//     1 or switch the other layer off.
//   - A person waits for the answer, and the request has no deadline.
//   - A PUT or DELETE must not run twice, nor a POST that Retry allows. A proxy that answers 503 may have forwarded it: set
//     Statuses to 429.
package client
