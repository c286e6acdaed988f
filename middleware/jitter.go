// The jitter of Retry-After.

package ratelimit

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

// spread writes the waits that the response of a denied request tells. Waits for
// an instant that many clients share are spread: the end of an aligned window, and
// the refill of a hidden policy. Spreading only lengthens a wait, by an amount that
// is equal at every instance and every try.
func (q *request) spread() {
	if q.verdict.Allowed {
		return
	}
	for i := range q.verdict.Policies {
		p, a := &q.verdict.Policies[i], &q.parts[i]
		if p.Shadow || p.Decision.Allowed {
			continue
		}
		p.wait = p.Decision.RetryAfter
		if a.denied > 0 {
			continue
		}
		if own := &q.checks[a.own].Decision; !own.Allowed {
			p.wait = max(p.wait, q.jittered(a, own))
		}
	}
}

// jittered returns the wait of a denied part, with jitter if its instant is shared.
func (q *request) jittered(a *part, d *algorithms.Decision) time.Duration {
	limit := a.limit
	aligned := limit.Algorithm().Aligned()
	if !aligned && !a.policy.hidden() || d.RetryAfter == algorithms.Never || d.Source == algorithms.Undecided {
		return d.RetryAfter
	}
	spread, now := min(max(limit.Window()/10, time.Second), 30*time.Second), time.Now()
	slot := now.UnixNano() / int64(spread)
	if aligned {
		// The window's end; rounded, because clocks differ a little.
		w := grid(limit).Microseconds()
		slot = (now.UnixMicro() + d.RetryAfter.Microseconds() + w/2) / w
	}
	return d.RetryAfter + headers.Jitter(spread, a.policy.Name, q.client(), slot)
}

// client returns whose answers are spread: the key of the first policy that is not
// hidden, otherwise the client's address.
func (q *request) client() string {
	if first := &q.parts[0]; !first.policy.hidden() {
		return q.key(first)
	}
	return q.m.address(q.http.Request)
}

// address returns the key of the client's address; "" if there is none.
func (m *Middleware) address(r *http.Request) string {
	key, _, err := m.clientIP.Append(make([]byte, 0, 64), &keyfunc.Request{Request: r, ClientIP: m.clientIP})
	if err != nil {
		return ""
	}
	return string(key)
}
