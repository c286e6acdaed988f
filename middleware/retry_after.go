// The waits in the response of a denied request.

package ratelimit

import (
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
)

// spread writes the waits for the response of a denied request. Spreading only
// lengthens a wait.
func (q *request) spread() {
	for i := range q.verdict.Policies {
		p, a := &q.verdict.Policies[i], &q.parts[i]
		if p.Shadow || p.spared || p.Decision.Allowed {
			continue
		}
		if p.wait = p.Decision.RetryAfter; a.own < 0 {
			continue
		}
		own := &q.checks[a.own].Decision
		switch {
		case own.Allowed, own.Source == algorithms.Undecided:
		case p.Banned:
			p.wait = max(p.wait, own.RetryAfter)
		default:
			denial := comeback.Denial{
				Policy: a.policy.Name, Key: q.key(a), Client: q.client(), Shared: !a.policy.countsClient, Hidden: a.policy.Hidden,
				Limit: a.limit, Cost: a.cost, Wait: own.RetryAfter,
				Reset: own.ResetAfter, Fleet: own.Source == algorithms.Shared,
			}
			if a.share >= 0 { // the tenant's own line
				share := &q.checks[a.share]
				denial.Key, denial.Shared, denial.Limit, denial.Reset = q.subject(a), false, share.Limit, share.Decision.ResetAfter
			}
			p.wait = q.m.comeback.Wait(q.http.Context(), &denial)
		}
	}
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
	address, _ := q.address()
	return address
}

// address appends the key of the client's address to q.keys, and returns it.
func (q *request) address() (string, error) {
	start := len(q.keys)
	keys, _, err := q.m.clientIP.Append(q.keys, &q.http)
	q.keys = keys
	return q.text(start, len(keys)), err
}

// address returns the key of the client's address; "" if there is none.
func (m *Middleware) address(r *http.Request) string {
	key, _, err := m.clientIP.Append(make([]byte, 0, 64), &keyfunc.Request{Request: r, ClientIP: m.clientIP})
	if err != nil {
		return ""
	}
	return string(key)
}
