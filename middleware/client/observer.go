package client

import (
	"context"
	"net/http"
	"time"
)

// An Observer receives the events of Transports. Many goroutines call Observe, on the path of every request, so it must
// be quick. It must neither change the event nor read a body.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// An ObserverFunc is an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An Event is something that a Transport reports. Fields that its kind does not mention are zero.
type Event struct {
	Kind EventKind

	// Name is Options.Name of the Transport.
	Name string

	// Request is the caller's request. It is nil for Registered.
	Request *http.Request

	// Response belongs to Sent, and to the kinds of giving up; nil if there is none.
	Response *http.Response

	// Err says why a Sent request has no response, or why the Transport gave up.
	Err error

	// Attempt numbers the attempts of the request, from 1. WaitedToRetry has the number of the attempt before it, other
	// waits the number of the attempt after them.
	Attempt int

	// Denied is true if a Sent request was denied; see Options.Statuses.
	Denied bool

	// Elapsed is the time until the response's header arrived (Sent), or the time waited.
	Elapsed time.Duration

	// Wait is the wait that is too long (GaveUpWait).
	Wait time.Duration
}

// An EventKind is the kind of an [Event].
type EventKind uint8

const (
	// Registered: NewTransport has succeeded.
	Registered EventKind = iota + 1
	// Sent: a request was sent, and has its response or its error.
	Sent
	// WaitedToRetry: a denied request has waited, and is sent again.
	WaitedToRetry
	// WaitedForPace: a request has waited for its turn in the pace.
	WaitedForPace
	// WaitedForLimit: a request has waited for Options.Limiter.
	WaitedForLimit
	// GaveUpWait: a wait exceeds the request's deadline or Options.MaxWait.
	GaveUpWait
	// GaveUpAttempts: a request was denied in its last attempt.
	GaveUpAttempts
	// GaveUpShare: retries have used up Options.RetryShare.
	GaveUpShare
	// GaveUpRequest: a denied request cannot be sent again, because of its method or its body, or because
	// Options.Limiter failed.
	GaveUpRequest
)

var kindNames = [...]string{
	Registered: "registered", Sent: "sent",
	WaitedToRetry: "waited_to_retry", WaitedForPace: "waited_for_pace", WaitedForLimit: "waited_for_limit",
	GaveUpWait: "gave_up_wait", GaveUpAttempts: "gave_up_attempts", GaveUpShare: "gave_up_share", GaveUpRequest: "gave_up_request",
}

// String returns the kind as one word, e.g. "waited_to_retry".
func (k EventKind) String() string {
	if int(k) >= len(kindNames) || kindNames[k] == "" {
		return "unknown"
	}
	return kindNames[k]
}

// observe reports an event to all observers.
func (t *Transport) observe(ctx context.Context, e *Event) {
	if len(t.o.Observers) == 0 {
		return
	}
	e.Name = t.o.Name
	for _, o := range t.o.Observers {
		o.Observe(ctx, *e)
	}
}
