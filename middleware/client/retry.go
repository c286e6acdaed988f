package client

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

const (
	// A service that answers 5xx without a wait for so long may be dead.
	deadAfter = 2 * time.Minute

	// An earlier attempt's response is read to its end, if it ends soon. So the wait does not keep its connection, or
	// its unit of a Concurrent limit, from other requests.
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// retry waits, and prepares the next attempt, if the response asks for it. It returns false if the caller gets resp.
func (x *exchange) retry(resp *http.Response) (bool, error) {
	if !x.denied {
		return false, nil
	}
	wait, refusal := x.plan()
	if refusal != "" {
		x.observe(&Event{Kind: GaveUp, Reason: refusal, Response: resp, Wait: wait})
		return false, nil
	}
	next, err := rewound(x.req)
	if err != nil { // the denial says more than the failure
		x.observe(&Event{Kind: GaveUp, Reason: refused, Response: resp, Err: err})
		return false, nil
	}
	if !x.t.shares.spend() {
		closeBody(next)
		x.observe(&Event{Kind: GaveUp, Reason: noShare, Response: resp})
		return false, nil
	}
	drain(resp)
	x.denial = resp // the pace or the limiter may still refuse the next attempt
	before := x.waited
	if err := x.rest(wait); err != nil {
		closeBody(next)
		return false, err
	}
	x.next = next
	x.observe(&Event{Kind: Waited, Reason: toRetry, Elapsed: x.waited - before})
	return true, nil
}

// rest waits after a denial. If the lane is held, the request keeps its place in the queue. Otherwise others go on.
func (x *exchange) rest(wait time.Duration) error {
	wait = time.Until(x.received.Add(wait))
	if x.holds {
		x.lane.join(&x.waiter)
		if wait = x.lane.held(); wait > x.budget() { // another denial has lengthened it; the queue refuses the request
			return nil
		}
	} else {
		x.waiter.ticket = 0 // the others may have another limit
	}
	if !x.stated() {
		x.bare++
	}
	before := x.waited
	defer func() {
		if x.broken() {
			x.dead += x.waited - before
		}
	}()
	return x.pause(wait, nil)
}

// stated reports whether the last response states a wait.
func (x *exchange) stated() bool { return x.fields.From != "" }

// broken reports whether the last response is a 5xx that states no wait.
func (x *exchange) broken() bool { return !x.stated() && x.status >= http.StatusInternalServerError }

// plan returns how long to wait before the next attempt, or why there is none.
func (x *exchange) plan() (wait time.Duration, refusal string) {
	least, budget := x.lane.ahead(&x.waiter), x.budget()
	if !x.holds {
		most := x.lane.mostBackoff()
		wait = backoff(x.bare+1, most, rand.Float64())
		least = max(least, backoff(x.bare+1, most, 0))
	}
	if x.broken() {
		budget = x.patience()
	}
	switch {
	case !x.t.repeatable(x.req):
		return 0, refused
	case x.t.o.Attempts > 0 && x.attempt >= x.t.o.Attempts:
		return 0, noAttempts
	case least > budget || budget == 0:
		return least, tooLong
	}
	// The random part leaves half of the remaining budget, so that there is time to send.
	return min(wait, least+(budget-least)/2), ""
}

// repeatable reports whether a request may be sent again, and can be.
func (t *Transport) repeatable(req *http.Request) bool {
	if hasBody(req) && req.GetBody == nil {
		return false
	}
	if t.o.Retry != nil {
		return t.o.Retry(req)
	}
	return slices.Contains(idempotent, req.Method)
}

// idempotent are the methods that RFC 9110 section 9.2.2 calls idempotent. "" is GET.
var idempotent = []string{
	"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete,
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// rewound returns a copy of a request whose body starts at its beginning.
func rewound(req *http.Request) (*http.Request, error) {
	next := req.WithContext(req.Context())
	if !hasBody(req) {
		return next, nil
	}
	body, err := req.GetBody()
	next.Body = body
	return next, err
}

// closeBody closes the body of a request that is not sent: a RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the request failed for another reason
	}
}

// drain reads the body of an earlier attempt, up to a bound, and closes it. A slow server cannot delay it, because
// Close ends the read. The response keeps the text as its body, because the caller may still get it.
func drain(resp *http.Response) {
	body := resp.Body
	timer := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer timer.Stop()
	var text bytes.Buffer
	_, err := io.CopyN(&text, body, drainBytes) // a failure only costs the connection
	_ = body.Close()
	if err == io.EOF {
		resp.Body = io.NopCloser(&text)
		return
	}
	resp.Body = io.NopCloser(io.MultiReader(&text, cut{}))
}

// cut is the end of a body that drain read only in part.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
