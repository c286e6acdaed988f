package middleware

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Verdict is what a [Middleware] makes of a request.
type Verdict struct {
	// Allowed is whether the request may be served, after Delay.
	Allowed bool

	// Degraded is whether the limiter that all instances share did not decide:
	// this process did alone, or nobody. It is never so of a Memory that is
	// the Middleware's own limiter.
	Degraded bool

	// Exempt is whether it may for the client's address alone: no policy was
	// asked. See Options.Exempt.
	Exempt bool

	failure Outcome // of all policies, if there is no decision

	// Status is what Handler answers if not: 429 (denied), 503 (denied, and
	// only by policies of Capacity), 401 (an identity is
	// missing or unknown), 400 (one is malformed), 503 (no decision, and a
	// policy that fails closed; or the middleware is closed), 500 (a mistake
	// of the program). It is 0 if Allowed.
	Status int

	// RetryAfter is the exact wait of a denied request, without the jitter of
	// the header; algorithms.Never if no wait helps. It is 0 if Allowed.
	RetryAfter time.Duration

	// Delay is how long to hold an admitted request before serving it.
	Delay time.Duration

	// Policies are the policies that were asked, private ones last.
	Policies []PolicyVerdict
}

// A PolicyVerdict is what one policy says.
type PolicyVerdict struct {
	Name     string
	Tier     string // "" for none, and for one that the policy does not have
	Limit    algorithms.Limit
	Private  bool
	Shadow   bool // it decides nothing
	Override bool // an override applies: to the limit, or it makes it a shadow, or bans
	Banned   bool // it denies without having been asked, and its figures mean nothing but for RetryAfter

	// KeyHash tells keys apart without showing them, for what counts distinct
	// ones. It is this process's own, and 0 without an Observer.
	KeyHash uint32

	Decision algorithms.Decision
}

type verdictKey struct{}

// A verdictContext carries a verdict to handlers.
type verdictContext struct {
	context.Context
	verdict Verdict
}

func (c *verdictContext) Value(key any) any {
	if key == (verdictKey{}) {
		return &c.verdict
	}
	return c.Context.Value(key)
}

// newVerdictContext returns one, and room for n policies. Most requests meet
// one, and then both are one allocation. It has no room for more: fresh memory
// is seldom in the processor's cache, and so its size is most of its price.
func newVerdictContext(n int) (*verdictContext, []PolicyVerdict) {
	if n > 1 {
		return new(verdictContext), make([]PolicyVerdict, n)
	}
	both := new(struct {
		verdictContext
		policies [1]PolicyVerdict
	})
	return &both.verdictContext, both.policies[:n]
}

// FromContext returns the verdict on the request that a handler serves, so
// that it may e.g. answer more cheaply when little is left. Of several
// Middlewares it is the innermost one's. It reports false if no policy applied,
// unless the client is exempt.
func FromContext(ctx context.Context) (Verdict, bool) {
	v, ok := ctx.Value(verdictKey{}).(*Verdict)
	if !ok {
		return Verdict{}, false
	}
	return *v, true
}
