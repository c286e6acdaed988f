package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"
)

// An Observer receives the events of Transports. Many goroutines call Observe, so it must be quick. It must neither
// change the event nor read a body. If it panics, the Transport writes that to slog.Default() and goes on.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// An ObserverFunc is an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An Event is a report of a Transport. Fields that its kind does not mention are zero.
type Event struct {
	Kind EventKind

	// Name is Options.Name.
	Name string

	// Request is the caller's; nil for Registered.
	Request *http.Request

	// Reason is why a request Waited or the Transport GaveUp, in one word; see these
	// kinds.
	Reason string

	// Response belongs to Sent and GaveUp; nil if there is none.
	Response *http.Response

	// Err says why a Sent request has no response, or why the Transport gave up.
	Err error

	// Attempt numbers the attempts of the request, from 1. Waited with the reason retry has the attempt before it,
	// other waits the attempt after.
	Attempt int

	// Denied is true if a Sent request was denied.
	Denied bool

	// Elapsed is the time until the response's header arrived (Sent), or the time waited.
	Elapsed time.Duration

	// Wait is how long the request should have waited, if it GaveUp for the reason wait.
	Wait time.Duration
}

// An EventKind is the kind of an [Event].
type EventKind uint8

const (
	// Registered: NewTransport succeeded.
	Registered EventKind = iota + 1
	// Sent: a request was sent, and has its response or its error.
	Sent
	// Waited: a request has waited. The reason is retry (it was denied, and is sent again), pace (a stated wait of the
	// server, or its turn in the pace), or limit (Options.Limiter).
	Waited
	// GaveUp: a request is not sent, or not sent again after a denial. The reason is wait (the wait is too long), attempts
	// (the last attempt was denied), request (the method, the body or a failed
	// Options.Limiter forbids a retry), or final (the server or Options.Final forbids it).
	GaveUp
)

// Reasons of waits, and of giving up.
const (
	toRetry, forPace, forLimit          = "retry", "pace", "limit"
	tooLong, noAttempts, refused, final = "wait", "attempts", "request", "final"
)

var kindNames = map[EventKind]string{Registered: "registered", Sent: "sent", Waited: "waited", GaveUp: "gave_up"}

// String returns the kind as one word, e.g. "gave_up".
func (k EventKind) String() string { return cmp.Or(kindNames[k], "unknown") }

// observe reports an event to all observers. A panic of an observer must end neither the request nor the process.
func (x *exchange) observe(e *Event) {
	e.Name, e.Request, e.Attempt = x.t.o.Name, x.req, x.attempt
	for _, o := range x.t.o.Observers {
		func() {
			defer func() {
				if why := recover(); why != nil {
					x.t.log.Warn("panic of a client's observer", e.Name, fmt.Errorf("%T: %v", o, why))
				}
			}()
			o.Observe(x.ctx, *e)
		}()
	}
}
