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

// A Verdict is the decision of a [Middleware] on a request.
type Verdict struct {
	// Allowed reports whether the request may be served, after Delay.
	Allowed bool

	// Degraded reports whether a limiter that instances share did not decide.
	Degraded bool

	// Exempt reports whether Options.Exempt applies.
	Exempt bool

	// Status is the status of a refusal; 0 if Allowed.
	Status int

	// RetryAfter is the wait of a denied request, without slot or jitter:
	// [algorithms.Never] if waiting cannot help. "Retry-After" in the package
	// comment says what a Concurrent limit tells.
	RetryAfter time.Duration

	// Delay is how long to hold an admitted request.
	Delay time.Duration

	// Policies are the asked policies, hidden ones last.
	Policies []PolicyVerdict

	config *config // that answers the request
	at     int64   // Unix time of the decision in ns, if headers tell instants
}

// A PolicyVerdict is a policy's part of a Verdict.
type PolicyVerdict struct {
	Name        string
	Tier        string // of the identity, if Policy.Tiers has it
	Limit       algorithms.Limit
	Hidden      bool
	Shadow      bool
	Override    bool
	Banned      bool // only RetryAfter of Decision is meaningful
	UnknownTier bool // Policy.Tiers lacks the identity's tier
	dynamic     bool // quota is not Limit's
	Outcome     Outcome

	// KeyHash distinguishes keys in this process; 0 without observers.
	KeyHash uint32

	Decision algorithms.Decision

	quota *headers.Quota // nil: headers keep silent
	wait  time.Duration  // RetryAfter, spread
}

// Policy returns the part of a policy, or false if it was not asked.
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

// Source is Shared or Local if any policy has that source, otherwise Undecided.
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

// lend returns a context for the handler. The context owns the verdict from now
// on.
func (q *request) lend() *verdictContext {
	c := &verdictContext{Context: q.http.Context(), verdict: q.verdict}
	q.verdict = nil
	return c
}

// A verdictContext lends a verdict to a handler. Handlers seldom ask for it. So
// it serves another request when the handler has returned, unless a caller
// keeps it.
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

// keep reports whether the verdict is still this request's. A kept verdict
// never serves another request.
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

// clone returns a copy that callers may keep.
func (v *Verdict) clone() Verdict {
	c := *v
	c.Policies = slices.Clone(v.Policies)
	return c
}

// free gives v back to the pool. No caller may have it.
func (v *Verdict) free() {
	clear(v.Policies)
	*v = Verdict{Policies: v.Policies[:0]}
	verdicts.Put(v)
}

// FromContext returns the verdict of the innermost Middleware, or false if no
// policy was asked. Call it before the handler returns; the verdict stays
// valid.
func FromContext(ctx context.Context) (Verdict, bool) {
	c, ok := ctx.Value(verdictKey{}).(*verdictContext)
	if !ok || !c.keep() || len(c.verdict.Policies) == 0 {
		return Verdict{}, false
	}
	return *c.verdict, true
}
