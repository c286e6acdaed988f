package ratelimit

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An Observer receives the events of Middlewares. Many goroutines call Observe, so it must be quick and must not change
// the event. If it panics, the Middleware logs that and goes on. Close waits until Observe returns, so an Observer must
// not call it in the same goroutine.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// An ObserverFunc is an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// An Event is a report of a Middleware. Fields that its kind does not mention
// are zero.
type Event struct {
	Kind EventKind

	Middleware *Middleware

	// Verdict belongs to Decided and Abandoned.
	Verdict Verdict

	// Err says why a Decided request has no decision, or why a settlement
	// failed.
	Err error

	// Elapsed is the duration of Decided, Settled or Banned.
	Elapsed time.Duration

	// Policy is the policy of Settled, Diverged and Banned, and of a Decided
	// whose key function failed.
	Policy string

	// Live and Candidate are the decisions of the policy's two limits (Diverged).
	Live, Candidate algorithms.Decision

	// Key is the client that they differ about, as [Offender] shows it (Diverged).
	Key string
}

// An EventKind is the kind of an [Event].
type EventKind uint8

const (
	// Decided: a request has its verdict. There is one per request.
	Decided EventKind = iota + 1
	// Settled: units were charged or returned later, or that failed.
	Settled
	// Abandoned: a held request was not served, because its client hung up, or after Release.
	Abandoned
	// Banned: a policy banned a key.
	Banned
	// Diverged: a policy's candidate would have decided otherwise.
	Diverged
	// Registered: New or Update put policies in force.
	Registered
	// Unregistered: Close was called.
	Unregistered
)

var eventNames = [...]string{
	Decided: "decided", Settled: "settled", Abandoned: "abandoned", Banned: "banned", Diverged: "diverged",
	Registered: "registered", Unregistered: "unregistered",
}

// String returns the kind as one word, e.g. "decided", or "unknown".
func (k EventKind) String() string {
	if k == 0 || int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}

func (m *Middleware) observe(ctx context.Context, e *Event) {
	e.Middleware = m
	for _, o := range m.observers {
		func() {
			defer func() { // a panic must neither keep units nor end the process
				if why := recover(); why != nil {
					m.log.Warn("panic of an observer", e.Policy, fmt.Errorf("%T: %v", o, why))
				}
			}()
			o.Observe(ctx, *e)
		}()
	}
}
