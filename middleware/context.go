// The verdict in the context of the handler.

package ratelimit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

type verdictKey struct{}

// A verdictContext lends a verdict to a handler. Handlers seldom ask for it. So
// it serves another request when the handler has returned, unless a caller
// keeps it.
type verdictContext struct {
	context.Context
	verdict *Verdict
	state   uint32 // lending, kept or ended; atomic
}

const (
	lending uint32 = iota
	kept
	ended
)

// keep reports whether the verdict is still this request's. A kept verdict
// never serves another request.
func (c *verdictContext) keep() bool {
	return atomic.CompareAndSwapUint32(&c.state, lending, kept) || atomic.LoadUint32(&c.state) == kept
}

// end takes the verdict back, unless it is kept.
func (c *verdictContext) end() {
	if atomic.CompareAndSwapUint32(&c.state, lending, ended) {
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
