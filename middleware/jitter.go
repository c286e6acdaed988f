// The waits in the response of a denied request: slots, jitter, or the honest
// wait.

package ratelimit

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	spreading "github.com/penstock-go/penstock/middleware/internal/slots"
)

// spread writes the waits for the response of a denied request. It spreads
// waits for an instant that many clients share. Spreading only lengthens a
// wait.
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
			p.wait = max(p.wait, q.spreadWait(a, own))
		}
	}
}

// spreadWait returns the wait of a denied part: until the client's slot if the
// policy spreads its clients, otherwise with jitter if many clients wait for
// one instant. That is so at the end of an aligned window, and for the refill
// of a hidden policy.
func (q *request) spreadWait(a *part, d *algorithms.Decision) time.Duration {
	if d.RetryAfter == algorithms.Never || d.Source == algorithms.Undecided {
		return d.RetryAfter
	}
	slotted := a.policy.spreads && q.unknown == nil && !a.limit.Algorithm().Concurrent()
	if slotted {
		if wait, ok := q.waitForSlot(a, d); ok {
			return wait
		}
	}
	if slotted || a.limit.Algorithm().Aligned() || a.policy.hidden() {
		return q.jittered(a, d)
	}
	return d.RetryAfter
}

// waitForSlot returns the wait until the client's slot, or false if there is none.
func (q *request) waitForSlot(a *part, d *algorithms.Decision) (time.Duration, bool) {
	now := time.Since(q.m.made).Microseconds()
	wait, ok := q.m.slots.wait(&denial{
		policy: a.policy.Name, key: q.key(a), client: q.client(), limit: a.limit, cost: a.cost,
		wait: d.RetryAfter.Microseconds(), instances: q.m.slots.countInstances(q.m.limiter, now),
	}, now)
	return max(d.RetryAfter, time.Duration(wait)*time.Microsecond), ok
}

// jittered returns the wait of a denied part with jitter. All instances and all
// tries get the same jitter.
func (q *request) jittered(a *part, d *algorithms.Decision) time.Duration {
	limit := a.limit
	spread, now := min(max(limit.Window()/10, time.Second), 30*time.Second), time.Now()
	slot := now.UnixNano() / int64(spread)
	if limit.Algorithm().Aligned() {
		// The end of the window, rounded because clocks differ a little.
		w := grid(limit).Microseconds()
		slot = (now.UnixMicro() + d.RetryAfter.Microseconds() + w/2) / w
	}
	return d.RetryAfter + spreading.Jitter(spread, a.policy.Name, q.client(), slot)
}

// client returns the identity for slots and jitter: the key of the first policy
// that counts one client, otherwise the client's address. Its bytes are the
// request's.
func (q *request) client() string {
	for i := range q.parts {
		if a := &q.parts[i]; a.policy.countsClient {
			return q.key(a)
		}
	}
	start := len(q.keys)
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	if err != nil {
		return ""
	}
	q.keys = keys
	return q.text(start, len(keys))
}

// address returns the key of the client's address; "" if there is none.
func (m *Middleware) address(r *http.Request) string {
	key, _, err := m.clientIP.Append(make([]byte, 0, 64), &keyfunc.Request{Request: r, ClientIP: m.clientIP})
	if err != nil {
		return ""
	}
	return string(key)
}
