package middleware

import (
	"errors"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

const (
	// A service that cannot decide asks clients to come back after one second
	// and a part of four more, so that they do not come all at once.
	unavailableFor    = time.Second
	unavailableSpread = 4 * time.Second
)

// describe sets the headers of the response to a request.
func (m *Middleware) describe(h http.Header, d *decision, r *http.Request) {
	switch {
	case d.verdict.Allowed:
	case m.denied == nil:
		headers.SetProblem(h)
	default:
		h.Set("Cache-Control", "no-store")
	}
	switch d.verdict.Status {
	case 0, http.StatusTooManyRequests:
		m.describeLimits(h, d, r)
	case http.StatusServiceUnavailable:
		if d.err == nil { // a limit of capacity
			m.describeLimits(h, d, r)
			return
		}
		slot := time.Now().UnixNano() / int64(unavailableSpread)
		headers.SetRetryAfter(h, unavailableFor+headers.Jitter(unavailableSpread, "", m.client(d, r), slot))
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", d.config.challenge)
	}
}

func (m *Middleware) describeLimits(h http.Header, d *decision, r *http.Request) {
	denied := !d.verdict.Allowed
	var wait time.Duration
	for i := range d.checks {
		c, quota := &d.checks[i], d.asked[i].grade.quota
		if c.Op != algorithms.Take {
			continue
		}
		own := c.Decision.RetryAfter
		if denied && !c.Decision.Allowed {
			own = m.jittered(d, r, i)
			wait = max(wait, own)
		}
		if quota == nil {
			continue
		}
		d.quotas = append(d.quotas, quota)
		if c.Decision.Source == algorithms.Undecided {
			continue
		}
		d.states = append(d.states, headers.State{
			Quota:      quota,
			Denied:     !c.Decision.Allowed,
			Remaining:  c.Decision.Remaining,
			RetryAfter: own,
			ResetAfter: c.Decision.ResetAfter,
			UnitAfter:  c.Decision.UnitAfter,
		})
	}
	if len(d.checks) == 0 {
		return
	}
	m.dialect.Write(h, headers.Response{
		Quotas: d.quotas, States: d.states, Denied: denied, RetryAfter: wait, Now: d.now,
	})
}

// jittered returns the wait that denied check i tells its client. Waits for an
// instant that many clients share, the turn of a window or the refill of a
// private policy, are spread: only ever later, by what is the same at every
// instance and every try.
func (m *Middleware) jittered(d *decision, r *http.Request, i int) time.Duration {
	c := &d.checks[i]
	wait, limit := c.Decision.RetryAfter, c.Limit
	aligned := limit.Algorithm().Aligned()
	spreads := aligned || d.asked[i].policy.Private
	if !spreads || wait == algorithms.Never || c.Decision.Source == algorithms.Undecided {
		return wait
	}
	spread, now := headers.Spread(limit.Window()), time.Now()
	slot := now.UnixNano() / int64(spread)
	if aligned {
		// The window's end; rounded, since clocks differ a little.
		w := grid(limit).Microseconds()
		slot = (now.UnixMicro() + wait.Microseconds() + w/2) / w
	}
	return wait + headers.Jitter(spread, c.Policy, m.client(d, r), slot)
}

// client returns whose answers are spread: the key of the first policy that is
// not private, else the client's address.
func (m *Middleware) client(d *decision, r *http.Request) string {
	if len(d.checks) > 0 && !d.asked[0].policy.Private {
		return d.checks[0].Key
	}
	address, err := m.clientIP.Of(r)
	if err != nil {
		return ""
	}
	return address
}

// problem is the default answer to what is not allowed.
func (m *Middleware) problem(w http.ResponseWriter, d *decision) {
	w.WriteHeader(d.verdict.Status)
	_, _ = w.Write(d.config.body(d.verdict)) // the client may be gone; there is nobody to tell
}

// statusOf returns the answer to a request whose key is an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, keyfunc.ErrMissing):
		return http.StatusUnauthorized
	case errors.Is(err, keyfunc.ErrMalformed):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
