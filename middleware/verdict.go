package ratelimit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A Verdict is the decision of a [Middleware] about a request.
type Verdict struct {
	// Allowed reports whether the request may be served, after Delay.
	Allowed bool

	// Degraded reports whether the shared limiter did not decide: this instance
	// decided alone, or no limiter did. It is never true of a Middleware whose own
	// limiter is an algorithms.Memory, or wraps one.
	Degraded bool

	// Exempt reports whether the request is allowed for the client's address
	// alone; see Options.Exempt.
	Exempt bool

	// Status is the status of the answer to a refused request: 429 (denied), 503
	// (only Capacity policies deny), 401 (an identity is missing or unknown), 400
	// (a key is malformed, or the value of a keyfunc.Custom is missing), 503 (no
	// decision, and a policy fails closed; a lookup failed; or the Middleware is
	// closed), 500 (an invalid check). It is 0 if Allowed.
	Status int

	// RetryAfter is the exact wait of a denied request, without the slot or jitter of
	// the header. It is algorithms.Never if waiting cannot help, and 0 if Allowed.
	RetryAfter time.Duration

	// Delay is how long to hold an admitted request before it is served.
	Delay time.Duration

	// Policies are the policies that were asked, hidden ones last.
	Policies []PolicyVerdict

	config *config // that answers the request
	at     int64   // Unix time of the decision in ns, if headers tell instants
}

// A PolicyVerdict is the part of one policy in a [Verdict].
type PolicyVerdict struct {
	Name        string
	Tier        string // of the identity, if Policy.Tiers has it; also under an override
	Limit       algorithms.Limit
	Hidden      bool
	Shadow      bool // the policy denies nothing
	Override    bool // an override applies
	Banned      bool // the key is banned; of Decision only RetryAfter is meaningful
	UnknownTier bool // Policy.Tiers lacks the identity's tier
	dynamic     bool // quota is not Limit's
	Outcome     Outcome

	// KeyHash tells keys apart without showing them. Each process has its own
	// hashes. It is 0 without observers.
	KeyHash uint32

	Decision algorithms.Decision

	quota *headers.Quota // nil: headers keep silent
	wait  time.Duration  // RetryAfter, spread
}

// Policy returns the part of the policy with a name. It reports false if that
// policy was not asked.
func (v *Verdict) Policy(name string) (PolicyVerdict, bool) {
	for i := range v.Policies {
		if v.Policies[i].Name == name {
			return v.Policies[i], true
		}
	}
	return PolicyVerdict{}, false
}

func (v *Verdict) has(name string) bool {
	return slices.ContainsFunc(v.Policies, func(p PolicyVerdict) bool { return p.Name == name })
}

// Source returns which limiter decided. One call asks one of them, so it is Shared
// or Local if any policy has that, and Undecided otherwise.
func (v *Verdict) Source() algorithms.Source {
	source := algorithms.Undecided
	for i := range v.Policies {
		if s := v.Policies[i].Decision.Source; s == algorithms.Shared {
			return s
		} else if s != algorithms.Undecided {
			source = s
		}
	}
	return source
}

type verdictKey struct{}

// lend returns a context for the handler, which has the verdict from now on.
func (q *request) lend() *verdictContext {
	c := &verdictContext{Context: q.http.Context(), verdict: q.verdict}
	q.verdict = nil
	return c
}

// A verdictContext lends a verdict to a handler. Handlers seldom ask for it, so it
// serves another request when the handler has returned, unless a caller keeps it.
type verdictContext struct {
	context.Context
	verdict *Verdict
	state   uint32 // lent, kept or ended; atomic
}

const (
	lent uint32 = iota
	kept
	ended
)

// keep reports whether the verdict is this request's. It never serves another
// request then.
func (c *verdictContext) keep() bool {
	return atomic.CompareAndSwapUint32(&c.state, lent, kept) || atomic.LoadUint32(&c.state) == kept
}

// end takes the verdict back, unless it is kept.
func (c *verdictContext) end() {
	if atomic.CompareAndSwapUint32(&c.state, lent, ended) {
		c.verdict.free()
	}
}

func (c *verdictContext) Value(key any) any {
	if key == (verdictKey{}) {
		return c
	}
	return c.Context.Value(key)
}

var verdicts = sync.Pool{New: func() any { return new(Verdict) }}

// clone returns the verdict for others, who may keep it.
func (v *Verdict) clone() Verdict {
	c := *v
	c.Policies = slices.Clone(v.Policies)
	return c
}

// free gives v, which no caller has, back to the pool.
func (v *Verdict) free() {
	clear(v.Policies)
	*v = Verdict{Policies: v.Policies[:0]}
	verdicts.Put(v)
}

// FromContext returns the verdict on the request that a handler serves. Under
// several Middlewares it is the verdict of the innermost one. It reports false if
// no policy was asked: the client is exempt, or no policy applies.
//
// Ask before the handler of the Middleware returns: FromContext may report false
// afterwards, unless it has returned the verdict before. A verdict that it has
// returned stays as it is.
func FromContext(ctx context.Context) (Verdict, bool) {
	c, ok := ctx.Value(verdictKey{}).(*verdictContext)
	if !ok || !c.keep() || len(c.verdict.Policies) == 0 {
		return Verdict{}, false
	}
	return *c.verdict, true
}
