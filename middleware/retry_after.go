// The waits in the response of a denied request: slots, jitter, or the honest
// wait.

package ratelimit

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/slots"
)

// spread writes the waits for the response of a denied request. It spreads
// waits for an instant that many clients share. Spreading only lengthens a
// wait.
func (q *request) spread() {
	for i := range q.verdict.Policies {
		p, a := &q.verdict.Policies[i], &q.parts[i]
		if p.Shadow || p.Decision.Allowed {
			continue
		}
		if p.wait = p.Decision.RetryAfter; a.own < 0 {
			continue
		}
		if own := &q.checks[a.own].Decision; !own.Allowed {
			p.wait = max(p.wait, q.spreadWait(a, own))
		}
	}
}

// spreadWait returns the wait of a denied part: until the client's slot if all
// clients share the limit, otherwise with jitter if many clients wait for one
// instant, the end of an aligned window.
func (q *request) spreadWait(a *part, d *algorithms.Decision) time.Duration {
	switch shared := a.policy.shared; {
	case d.RetryAfter == algorithms.Never, d.Source == algorithms.Undecided, a.limit.Algorithm().Concurrent():
		return d.RetryAfter // of a Concurrent limit, the rate is unknown
	case !shared && !a.limit.Algorithm().Aligned():
		return d.RetryAfter
	}
	denial := slots.Denial{
		Policy: a.policy.Name, Key: q.key(a), Client: q.client(), Limit: a.limit, Cost: a.cost, Wait: d.RetryAfter.Microseconds(),
	}
	if a.policy.shared {
		now := time.Since(q.m.made).Microseconds()
		denial.Instances = q.m.instances.Of(q.m.limiter, now)
		if wait, ok := q.m.slots.Wait(&denial, now); ok {
			return time.Duration(wait) * time.Microsecond
		}
	}
	return denial.Jittered(time.Now())
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
