package middleware

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

// A decision is the work on one request. It is pooled; only the carrier
// outlives it.
type decision struct {
	verdict Verdict
	carrier *verdictContext // holds the verdict's Policies
	err     error           // why there is none, if the request is refused for it
	trouble error           // why there is none, if it may pass all the same
	now     time.Time

	keys   []byte // of all checks, one after the other
	ends   []int  // of each check's key
	checks []algorithms.Check
	asked  []*policy // of each check
	grades []grade   // of each check

	quotas []*headers.Quota
	states []headers.State
}

var decisions = sync.Pool{New: func() any { return new(decision) }}

func newDecision() *decision { return decisions.Get().(*decision) }

// free gives d back, without what belongs to its request.
func (d *decision) free() {
	clear(d.checks)
	clear(d.grades)
	clear(d.states)
	*d = decision{
		keys: d.keys[:0], ends: d.ends[:0], checks: d.checks[:0], asked: d.asked[:0],
		grades: d.grades[:0], quotas: d.quotas[:0], states: d.states[:0],
	}
	decisions.Put(d)
}

// ask finds the verdict on a request.
func (d *decision) ask(m *Middleware, r *http.Request) {
	if m.closing.Load() {
		d.refuse(http.StatusServiceUnavailable, ErrClosed)
		return
	}
	if m.skipPreflights && preflight(r) {
		d.verdict.Allowed = true
		return
	}
	unknown, err := d.collect(m, r)
	if err != nil {
		if d.refuse(statusOf(err), err); d.verdict.Status == http.StatusInternalServerError {
			m.troubles.log("a key function failed, and its requests are refused", err)
		}
		return
	}
	if len(d.checks) == 0 {
		d.verdict.Allowed = true
		return
	}
	err = m.limiter.Allow(r.Context(), d.checks)
	d.judge(m, r, err)
	if unknown != nil && d.verdict.Allowed {
		// Its try was paid for. It is no identity all the same.
		d.refuse(http.StatusUnauthorized, unknown)
	}
}

// ErrClosed is why a closed [Middleware] refuses.
var ErrClosed = errors.New("middleware: closed")

func (d *decision) refuse(status int, err error) {
	d.verdict.Allowed, d.verdict.Status, d.verdict.Delay, d.err = false, status, 0, err
}

// collect makes the checks of a request, one per policy that applies. A missing
// or malformed identity is an error, whichever policy meets it.
//
// If a policy meets an unknown one, that is returned as unknown, and the only
// check is that policy's, of the client's address: guessing keys costs, and
// opens no fresh bucket.
func (d *decision) collect(m *Middleware, r *http.Request) (unknown, err error) {
	var met *policy
	for _, p := range m.policies {
		if p.Skip != nil && p.Skip(r) {
			continue
		}
		keys, err := p.Key.Append(d.keys, r)
		if errors.Is(err, keyfunc.ErrUnknown) {
			if met == nil {
				met, unknown = p, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		d.keys = keys
		if met == nil {
			g, tier := p.grade(r)
			if tier != "" && m.observer != nil {
				m.observer.Observe(r.Context(), Event{Kind: UnknownTier, Policy: p.Name, Tier: tier})
			}
			d.add(p, g, p.cost(r))
		}
	}
	if met != nil {
		d.keys, d.ends, d.checks, d.asked, d.grades = d.keys[:0], d.ends[:0], d.checks[:0], d.asked[:0], d.grades[:0]
		if d.keys, err = m.clientIP.Append(d.keys, r); err != nil {
			return nil, err
		}
		d.add(met, met.base, 1)
	}
	// No copy: a limiter does not keep the bytes of a key, and d.keys stays as
	// it is until d is freed.
	all, start := unsafe.String(unsafe.SliceData(d.keys), len(d.keys)), 0
	for i, end := range d.ends {
		d.checks[i].Key = all[start:end]
		start = end
	}
	return unknown, nil
}

// add adds a check of the key that ends d.keys.
func (d *decision) add(p *policy, g grade, cost int64) {
	d.ends = append(d.ends, len(d.keys))
	d.checks = append(d.checks, algorithms.Check{Policy: p.Name, Limit: g.limit, Cost: cost})
	d.asked = append(d.asked, p)
	d.grades = append(d.grades, g)
}

// judge makes the verdict of the limiter's answers, or of its error.
func (d *decision) judge(m *Middleware, r *http.Request, err error) {
	v := &d.verdict
	d.carrier = new(verdictContext)
	v.Policies = d.carrier.policies(len(d.checks))
	for i := range d.checks {
		if err != nil {
			d.checks[i].Decision = algorithms.Decision{}
		}
		c := &d.checks[i]
		v.Policies[i] = PolicyVerdict{
			Name: c.Policy, Tier: d.grades[i].tier, Limit: c.Limit,
			Private: d.asked[i].Private, Decision: c.Decision,
		}
		if !c.Decision.Allowed {
			v.RetryAfter = max(v.RetryAfter, c.Decision.RetryAfter)
		}
		v.Delay = max(v.Delay, c.Decision.Delay)
	}
	switch {
	case err != nil:
		d.fail(m, r.Context(), err)
	case algorithms.Allowed(d.checks):
		v.Allowed = true
	default:
		v.Status = http.StatusTooManyRequests
	}
}

// fail decides without the limiter.
func (d *decision) fail(m *Middleware, ctx context.Context, err error) {
	switch {
	case errors.Is(err, algorithms.ErrInvalid):
		d.refuse(http.StatusInternalServerError, err)
		m.troubles.log("a request could not be limited, and was refused", err)
	case ctx.Err() != nil:
		// The client is gone. Serving it unlimited would be a way around the
		// limits for those who hang up at once.
		d.refuse(http.StatusServiceUnavailable, err)
	case d.failsClosed():
		d.refuse(http.StatusServiceUnavailable, err)
		m.troubles.log("the limiter cannot decide; policies that fail closed refuse", err)
	default:
		d.verdict.Allowed, d.trouble = true, err
		for i := range d.verdict.Policies {
			d.verdict.Policies[i].Decision.Allowed = true
		}
		m.troubles.log("the limiter cannot decide; requests pass", err)
	}
}

func (d *decision) failsClosed() bool {
	for _, p := range d.asked {
		if p.Fail == algorithms.FailClosed {
			return true
		}
	}
	return false
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

// preflight reports whether r looks like a CORS preflight (Fetch, 4.8).
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}
