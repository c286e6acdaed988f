package client

import (
	"context"
	"net/http"
	"time"
)

// An Observer receives the events of Transports. Many goroutines call Observe, so it must be quick. It must neither
// change the event nor read a body.
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

	// Response belongs to Sent and GaveUp kinds; nil if there is none.
	Response *http.Response

	// Err says why a Sent request has no response, or why the Transport gave up.
	Err error

	// Attempt numbers the attempts of the request, from 1. WaitedToRetry has the attempt before it, other waits the
	// attempt after.
	Attempt int

	// Denied is true if a Sent request was denied.
	Denied bool

	// Elapsed is the time until the response's header arrived (Sent), or the time waited.
	Elapsed time.Duration

	// Wait is GaveUpWait's.
	Wait time.Duration
}

// An EventKind is the kind of an [Event].
type EventKind uint8

const (
	// Registered: NewTransport succeeded.
	Registered EventKind = iota + 1
	// Sent: a request was sent, and has its response or its error.
	Sent
	// WaitedToRetry: a denied request has waited, and is sent again.
	WaitedToRetry
	// WaitedForPace: a request has waited for its turn in the pace.
	WaitedForPace
	// WaitedForLimit: a request has waited for Options.Limiter.
	WaitedForLimit
	// GaveUpWait: a wait is too long.
	GaveUpWait
	// GaveUpAttempts: a request was denied in its last attempt.
	GaveUpAttempts
	// GaveUpShare: RetryShare is used up.
	GaveUpShare
	// GaveUpRequest: the method, the body or a failed Options.Limiter forbids a retry.
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
