package client

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
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
	if !x.answer.denied {
		return false, nil
	}
	wait, refusal := x.plan()
	next, err := x.req, error(nil)
	if refusal == "" {
		if next, err = rewound(x.req); err != nil { // the denial says more than the failure
			wait, refusal = 0, refused
		}
	}
	if refusal != "" {
		x.observe(&Event{Kind: GaveUp, Reason: refusal, Response: resp, Wait: wait, Err: err})
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
	if x.answer.broken() {
		x.dead += x.waited - before
	}
	x.observe(&Event{Kind: Waited, Reason: toRetry, Elapsed: x.waited - before})
	return true, nil
}

// rest waits after a denial. If the line is held, the request keeps its place in the queue, and the wait ends with the
// hold. Otherwise others go on.
func (x *exchange) rest(wait time.Duration) error {
	if !x.holds {
		x.waiter.ticket = 0 // the others may have another limit
		return x.pause(time.Until(x.received.Add(wait)), nil)
	}
	x.lane.join(&x.waiter)
	held := func() time.Duration { return x.lane.look(&x.waiter).held }
	// If another denial has lengthened the hold too much, the queue refuses the request.
	for wait = held(); wait > 0 && wait <= x.patience(); wait = held() {
		if err := x.pause(wait, x.waiter.wake); err != nil {
			return err
		}
	}
	return nil
}

// plan returns how long to wait before the next attempt, or why there is none.
func (x *exchange) plan() (wait time.Duration, refusal string) {
	view, budget := x.lane.look(&x.waiter), x.patience()
	least := view.least
	if !x.holds {
		wait = backoff(x.bare, view.most, rand.Float64())
		least = max(least, backoff(x.bare, view.most, 0))
	}
	switch {
	case x.final:
		return 0, final
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

// final reports whether a denial ends the retries: a server or the caller says so.
func (t *Transport) final(resp *http.Response) bool {
	return slices.ContainsFunc([]string{"X-Should-Retry", "Stripe-Should-Retry"}, func(field string) bool {
		return strings.EqualFold(resp.Header.Get(field), "false")
	}) || t.o.Final != nil && t.o.Final(resp)
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
	next, err := req.WithContext(req.Context()), error(nil)
	if hasBody(req) {
		next.Body, err = req.GetBody()
	}
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
