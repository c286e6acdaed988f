// Package client sends requests to servers that limit them.
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
// The Transport returns a 429 or 503 if the wait exceeds the request's deadline or MaxWait, if the attempts or
// RetryShare are used up, or if the request cannot be repeated. A POST or PATCH needs Options.Retry, and a body needs
// GetBody.
//
// # How long it waits
//
// With the zero Options:
//
//	Cause                        Time                                          Who waits
//	a stated wait                the wait, and less than a tenth more (1 s)    all requests of the origin and partition
//	a stated wait below 1 s      the same; again denied, at least as below     all requests of the origin and partition
//	429 without a wait           half to all of 1 s, 2 s, 4 s, up to 30 s      this request; with Pace, all
//	503 without a wait           the same, for 2 minutes in sum                this request; with Pace, all
//	all waits of a request       10 minutes (MaxWait), or until its deadline
//
// A response states a wait in Retry-After, otherwise in the fields that package headers lists. After a stated wait, the
// denied requests leave first, in the order of their arrival. As many leave at once as the server admitted before it
// denied; further ones leave one at a time, and each success lets one more go. A request that cannot wait until then
// fails with [ErrWait] at once, and is not sent. If the wait exceeds MaxWait, one request per MaxWait is sent.
//
// # Retries, Pace and Limiter
//
// Each request waits for all that are in use, in the order of the columns. The sum of its waits counts.
//
//	Options            A stated wait   Pace                               Limiter           After a denial
//	none               holds all       -                                  -                 waits and retries
//	Pace               holds all       spreads requests over the window   -                 and doubles the interval
//	Limiter            holds all       -                                  takes a unit      takes another unit
//	Pace and Limiter   holds all       spreads requests over the window   takes a unit      both
//
// Attempts of 1 ends retries only: stated waits hold requests, and Pace and Limiter work. Use Pace if the server
// advertises its limit. Use Limiter if you know the limit, or if several processes share it. Use both if other programs
// spend the same quota.
//
// # When not to use it
//
//   - Another layer retries, such as a vendor's SDK, a service mesh, or a job queue: attempts multiply. Set Attempts to
//     1 or switch the other layer off.
//   - A person waits for the answer, and the request has no deadline.
//   - A PUT or DELETE must not run twice, nor a POST that Retry allows. A proxy that answers 503 may have forwarded it: set
//     Statuses to 429.
package client
