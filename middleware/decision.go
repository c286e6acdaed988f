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
	now     time.Time       // of the answer, if headers say instants

	keys   []byte // of all checks, one after the other
	checks []algorithms.Check
	asked  []asked // of each check

	quotas []*headers.Quota
	states []headers.State
}

// asked is on whose behalf a check asks.
type asked struct {
	policy *policy
	grade  *grade
	end    int // of the check's key
}

var decisions = sync.Pool{New: func() any { return new(decision) }}

func newDecision() *decision { return decisions.Get().(*decision) }

// free gives d back, without what belongs to its request. What stays in its
// slices is of the middleware or of d itself, and is written over before it is
// read: clearing it would take as long as the rest of what is done here.
func (d *decision) free() {
	d.verdict, d.carrier, d.err, d.trouble = Verdict{}, nil, nil, nil
	d.keys, d.checks, d.asked = d.keys[:0], d.checks[:0], d.asked[:0]
	d.quotas, d.states = d.quotas[:0], d.states[:0]
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
	if m.dialect&headers.X != 0 {
		d.now = time.Now()
	}
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
		d.keys, d.checks, d.asked = d.keys[:0], d.checks[:0], d.asked[:0]
		if d.keys, err = m.clientIP.Append(d.keys, r); err != nil {
			return nil, err
		}
		d.add(met, met.base, 1)
	}
	// No copy: a limiter does not keep the bytes of a key, and d.keys stays as
	// it is until d is freed.
	all, start := unsafe.String(unsafe.SliceData(d.keys), len(d.keys)), 0
	for i := range d.asked {
		end := d.asked[i].end
		d.checks[i].Key = all[start:end]
		start = end
	}
	return unknown, nil
}

// add adds a check of the key that ends d.keys.
func (d *decision) add(p *policy, g *grade, cost int64) {
	d.checks = append(d.checks, algorithms.Check{Policy: p.Name, Limit: g.limit, Cost: cost, Fail: p.Fail})
	d.asked = append(d.asked, asked{policy: p, grade: g, end: len(d.keys)})
}

// judge makes the verdict of the limiter's answers, or of its error.
func (d *decision) judge(m *Middleware, r *http.Request, err error) {
	v := &d.verdict
	d.carrier, v.Policies = newVerdictContext(len(d.checks))
	for i := range d.checks {
		if err != nil {
			d.checks[i].Decision = algorithms.Decision{}
		}
		c, a := &d.checks[i], &d.asked[i]
		p := &v.Policies[i] // assigned by fields: a literal would be made and then copied
		p.Name, p.Tier, p.Private = c.Policy, a.grade.tier, a.policy.Private
		p.Limit, p.Decision = c.Limit, c.Decision
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
	for _, a := range d.asked {
		if a.policy.Fail == algorithms.FailClosed {
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
