package middleware

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// An Observer is told what a [Middleware] does, e.g. to count it. Observe is
// called from many goroutines on the path of every request: it must be quick.
// It must not change what it is given.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Observers returns an observer that tells each of several, in order; nil if all
// of them are nil. Those that are nil are left out.
func Observers(observers ...Observer) Observer {
	told := slices.DeleteFunc(slices.Clone(observers), func(o Observer) bool { return o == nil })
	switch len(told) {
	case 0:
		return nil
	case 1:
		return told[0]
	default:
		return severalObservers(told)
	}
}

type severalObservers []Observer

func (s severalObservers) Observe(ctx context.Context, e Event) {
	for _, o := range s {
		o.Observe(ctx, e)
	}
}

// An Event is something that happened. Fields that its kind does not mention
// are zero.
type Event struct {
	Kind EventKind

	// Verdict is that of Decided and Abandoned.
	Verdict Verdict

	// Err is why no decision could be made, of Decided, or no settlement, of
	// Settled. Clients never see it.
	Err error

	// Elapsed is how long the decision took, of Decided; how long a settlement
	// took from when it was due until it was made, of Settled; and how long a ban
	// lasts, of Banned.
	Elapsed time.Duration

	// Policy is the policy of every kind but Decided and Abandoned; and that of
	// Decided whose key is missing or malformed, or whose key function failed:
	// the verdict has no Policies then. Tier is what the request named, of
	// UnknownTier: it may be of the client's making, so it is no label for a
	// metric.
	Policy, Tier string

	// Live and Candidate are what the two limits of Policy decided, of Diverged.
	Live, Candidate algorithms.Decision
}

// An EventKind says what happened.
type EventKind uint8

const (
	// Decided: a request has its verdict. One per request.
	Decided EventKind = iota + 1
	// UnknownTier: a request named a tier that its policy does not have.
	UnknownTier
	// Abandoned: a held request was not served, because its client hung up or
	// the middleware was closed. What it took was given back.
	Abandoned
	// Diverged: a policy's candidate would have decided otherwise.
	Diverged
	// Settled: what a request of Policy settled late was charged or given back,
	// or could not be: see Err.
	Settled
	// SettleDropped: a settlement was dropped, since too many were waiting. What
	// was reserved stays charged, and what exceeds it is not.
	SettleDropped
	// Banned: a key of Policy was banned, for Elapsed.
	Banned
)

// String returns the kind's name, e.g. "unknown-tier".
func (k EventKind) String() string {
	switch k {
	case Decided:
		return "decided"
	case UnknownTier:
		return "unknown-tier"
	case Abandoned:
		return "abandoned"
	case Diverged:
		return "diverged"
	case Settled:
		return "settled"
	case SettleDropped:
		return "settle-dropped"
	case Banned:
		return "banned"
	default:
		return "unknown"
	}
}
