package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/logwriter"
)

// ErrWait is wrapped by the error of a request that was not sent, because its wait would exceed Options.MaxWait or its
// deadline. For a deadline, [context.DeadlineExceeded] is wrapped too.
var ErrWait = errors.New("the wait exceeds the request's budget")

// A Transport is an [http.RoundTripper] that waits as servers ask. The zero value does not work. It is safe for
// concurrent use, and needs no Close.
type Transport struct {
	base http.RoundTripper
	o    Options
	log  logwriter.Seldom

	mu    sync.Mutex
	lanes map[string]*lane // of the origins and partitions that requests use, by their keys
}

// NewTransport returns a Transport that sends requests through base; nil means [http.DefaultTransport]. The error joins
// all misconfigurations.
func NewTransport(base http.RoundTripper, o *Options) (*Transport, error) {
	c, err := o.completed()
	if err != nil {
		return nil, err
	}
	t := &Transport{base: cmp.Or(base, http.DefaultTransport), o: c, lanes: map[string]*lane{}}
	t.log.Writer = logwriter.New(nil)
	(&exchange{t: t, ctx: context.Background()}).observe(&Event{Kind: Registered})
	return t, nil
}

// RetryAfter returns how long a response asks its client to wait, counted from its arrival, or false if it names no
// wait. It does not read the body. resp may be nil.
func RetryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
	f := headers.Read(resp.StatusCode, resp.Header, time.Now())
	return f.Wait, f.From != ""
}

// CloseIdleConnections closes the base's idle connections.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper]. It returns the last response unread; if a retry was refused after the wait,
// with the first 64 KiB of its body. Errors are the base's, the context's, the limiter's, or wrap [ErrWait].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil {
		return t.base.RoundTrip(req) // it fails
	}
	x := &exchange{t: t, ctx: req.Context(), req: req, next: req, lane: t.use(req)}
	x.waiter = waiter{route: routeOf(req), wake: make(chan struct{}, 1)}
	defer t.put(x.lane)
	defer func() { x.lane.leave(&x.waiter, false) }() // if it has not left
	for {
		resp, err := x.send()
		if err != nil {
			return x.fail(err)
		}
		again, err := x.retry(resp)
		if err != nil {
			return x.fail(err)
		}
		if !again {
			return resp, nil
		}
	}
}

// An exchange is one call of RoundTrip.
type exchange struct {
	t        *Transport
	ctx      context.Context
	req      *http.Request
	next     *http.Request // req, or its copy with a rewound body
	lane     *lane
	waiter   waiter         // in the lane
	turn     uint64         // in the pace, of the attempt; 0: none
	held     *held          // of the attempt
	denial   *http.Response // until the next attempt is admitted; nil: none
	attempt  int
	bare     int // denials that stated no wait
	waited   time.Duration
	dead     time.Duration // waited after a 5xx that stated no wait
	answer   verdict       // the last response,
	received time.Time
	holds    bool // the last response, a denial, holds all requests of the line
	final    bool // it ends the retries
}

// send waits for the pace and the limiter, and sends the request.
func (x *exchange) send() (*http.Response, error) {
	x.attempt++
	x.turn, x.held = 0, nil
	answered := false
	defer func() {
		if !answered { // an error, or a panic of the base, the limiter or Final
			x.lane.learn(&x.waiter, x.turn, nil, time.Now())
			x.held.release()
		}
	}()
	if err := x.admit(); err != nil {
		closeBody(x.next)
		return nil, err
	}
	x.denial = nil
	begun := time.Now()
	resp, err := x.t.base.RoundTrip(x.next)
	x.received = time.Now()
	e := Event{Kind: Sent, Response: resp, Err: err, Elapsed: x.received.Sub(begun)}
	if err != nil {
		x.observe(&e)
		return nil, err
	}
	if resp.Body == nil { // a client's response must have one
		resp.Body = http.NoBody
	}
	v := &x.answer
	*v = verdict{headers.Read(resp.StatusCode, resp.Header, x.received), resp.StatusCode, false, x.bare > 0, begun}
	v.denied = x.t.denies(resp.StatusCode, &v.fields)
	e.Denied = v.denied
	if x.final = v.denied && x.t.final(resp); x.final && !v.stated() {
		v = nil // no wait helps, so the others do not wait
	}
	if x.answer.denied && !x.answer.stated() {
		x.bare++
	}
	answered = true
	x.holds = x.lane.learn(&x.waiter, x.turn, v, x.received)
	x.held.until(resp)
	x.observe(&e)
	return resp, nil
}

// fail returns the denial whose retry was not admitted, otherwise the error. If the context has ended, it returns the
// context's error, as package net/http does.
func (x *exchange) fail(err error) (*http.Response, error) {
	if x.denial == nil || x.ctx.Err() != nil {
		return nil, err
	}
	if !errors.Is(err, ErrWait) {
		x.observe(&Event{Kind: GaveUp, Reason: refused, Response: x.denial, Err: err})
	}
	return x.denial, nil
}

// denies reports whether a response asks to send the request again.
func (t *Transport) denies(status int, f *headers.Fields) bool {
	ambiguous := status == http.StatusForbidden || status == http.StatusRequestEntityTooLarge
	return slices.Contains(t.o.Statuses, status) && (!ambiguous || f.From != "")
}

// patience returns how long the request may still wait, at least 0. If the service may be dead, by the responses to this
// request or to the others, that ends earlier.
func (x *exchange) patience() time.Duration {
	left := x.t.o.MaxWait - x.waited
	if deadline, ok := x.ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	dead := min(x.lane.look(&x.waiter).dead, x.waited)
	if x.answer.broken() {
		dead = max(dead, x.dead)
	}
	if dead > 0 && x.t.o.Attempts == 0 {
		left = min(left, deadAfter-dead)
	}
	return max(left, 0)
}

// tooLong returns the error of a wait that exceeds what is left, and reports it.
func (x *exchange) tooLong(reason string, wait, left time.Duration) error {
	what := map[string]string{forPace: "the server", forLimit: "the limiter"}[reason]
	err := fmt.Errorf("ratelimit: client: waited %v for %s, at least %v more are needed, and %v are left: %w", x.waited, what, wait, left, ErrWait)
	if deadline, ok := x.ctx.Deadline(); ok && time.Until(deadline) <= left {
		err = fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	e := Event{Kind: GaveUp, Reason: tooLong, Response: x.denial, Wait: wait}
	if x.denial == nil {
		e.Err = err
	}
	x.observe(&e)
	return err
}

// pause waits for d, or until wake or the end of the context. It counts the time.
func (x *exchange) pause(d time.Duration, wake <-chan struct{}) error {
	begun := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	defer func() { x.waited += time.Since(begun) }()
	select {
	case <-timer.C:
		return nil
	case <-wake:
		return nil
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	}
}
