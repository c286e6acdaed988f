package middleware

import (
	"cmp"
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
	config  *config         // that it is made and answered by
	now     time.Time       // of the answer, if headers say instants

	keys     []byte // of all checks, one after the other
	checks   []algorithms.Check
	asked    []asked // of each check
	policies int     // that were asked: checks, without candidates
	banned   bool    // and so nobody is asked: the checks are those of bans

	quotas []*headers.Quota
	states []headers.State
}

// asked is on whose behalf a check asks.
type asked struct {
	policy     *policy
	grade      *grade
	override   bool
	start, end int // of the check's key
}

var decisions = sync.Pool{New: func() any { return new(decision) }}

func newDecision() *decision { return decisions.Get().(*decision) }

// free gives d back, without what belongs to its request. What stays in its
// slices is of the middleware or of d itself, and is written over before it is
// read: clearing it would take as long as the rest of what is done here.
func (d *decision) free() {
	d.verdict, d.carrier, d.err, d.trouble, d.policies = Verdict{}, nil, nil, nil, 0
	d.config, d.banned = nil, false
	d.keys, d.checks, d.asked = d.keys[:0], d.checks[:0], d.asked[:0]
	d.quotas, d.states = d.quotas[:0], d.states[:0]
	decisions.Put(d)
}

// ask finds the verdict on a request.
func (d *decision) ask(m *Middleware, r *http.Request) {
	d.config = m.config.Load()
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
	} else {
		d.decide(m, r)
	}
	if unknown != nil && d.verdict.Allowed {
		// Its try was paid for. It is no identity all the same.
		d.refuse(http.StatusUnauthorized, unknown)
	}
}

// decide asks the limiter about the checks, unless there is a ban.
func (d *decision) decide(m *Middleware, r *http.Request) {
	var err error
	if !d.banned {
		err = m.limiter.Allow(r.Context(), d.checks)
	}
	if m.dialect&headers.X != 0 {
		d.now = time.Now()
	}
	d.judge(m, r, err)
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
//
// If a policy meets a key that is banned, the only checks are those of bans,
// which are answers already.
func (d *decision) collect(m *Middleware, r *http.Request) (unknown, err error) {
	var met *policy
	for _, p := range d.config.policies {
		if p.Skip != nil && p.Skip(r) {
			continue
		}
		keys, err := p.Key.Append(d.keys, r)
		if err != nil && m.unasked(p) {
			continue
		}
		if errors.Is(err, keyfunc.ErrUnknown) {
			if met == nil {
				met, unknown = p, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		start := len(d.keys)
		d.keys = keys
		var u ruling
		if m.overrides != nil {
			u = d.rule(m, p, start)
		}
		if met == nil && !u.off {
			if u.grade == nil {
				u.grade = m.grade(p, r)
			}
			d.add(p, u, p.cost(r), start)
		}
	}
	if d.banned {
		unknown = nil
	} else if met != nil {
		d.keys, d.checks, d.asked, d.policies = d.keys[:0], d.checks[:0], d.asked[:0], 0
		if d.keys, err = m.clientIP.Append(d.keys, r); err != nil {
			return nil, err
		}
		var u ruling
		if m.overrides != nil {
			u = d.rule(m, met, 0)
		}
		if !u.off {
			u.grade = cmp.Or(u.grade, met.base)
			d.add(met, u, 1, 0)
		}
	}
	for i := range d.asked {
		d.checks[i].Key = d.key(d.asked[i].start, d.asked[i].end)
	}
	return unknown, nil
}

// key returns a part of d.keys. No copy: a limiter does not keep the bytes of a
// key, and d.keys stays as it is until d is freed.
func (d *decision) key(start, end int) string {
	return unsafe.String(unsafe.SliceData(d.keys), len(d.keys))[start:end]
}

// grade returns the limit of a request without an override's.
func (m *Middleware) grade(p *policy, r *http.Request) *grade {
	g, tier := p.grade(r)
	if tier != "" && m.observer != nil {
		m.observer.Observe(r.Context(), Event{Kind: UnknownTier, Policy: p.Name, Tier: tier})
	}
	return g
}

// add adds the checks of a policy and of its candidate, of the key that stands
// at the end of d.keys.
func (d *decision) add(p *policy, u ruling, cost int64, start int) {
	g, op, fail := u.grade, algorithms.Take, p.Fail
	if p.Shadow || u.shadow {
		op = algorithms.Trial
	}
	if u.shadow && fail == algorithms.FailClosed {
		fail = algorithms.FailLocal // what denies nothing does not fail closed
	}
	a := asked{policy: p, grade: g, override: u.found, start: start, end: len(d.keys)}
	d.checks = append(d.checks, algorithms.Check{Policy: p.Name, Limit: g.limit, Cost: cost, Op: op, Fail: fail, Exact: p.exact()})
	d.asked = append(d.asked, a)
	d.policies++
	if p.candidate != nil && g == p.base && op == algorithms.Take {
		a.grade = p.candidate
		d.checks = append(d.checks, algorithms.Check{Policy: p.trial, Limit: a.grade.limit, Cost: cost, Op: algorithms.TrialInstead})
		d.asked = append(d.asked, a)
	}
}

// judge makes the verdict of the limiter's answers, or of its error.
func (d *decision) judge(m *Middleware, r *http.Request, err error) {
	v := &d.verdict
	d.carrier, v.Policies = newVerdictContext(d.policies)
	status, n := http.StatusServiceUnavailable, 0
	for i := range d.checks {
		if err != nil {
			d.checks[i].Decision = algorithms.Decision{}
		}
		c, a := &d.checks[i], &d.asked[i]
		if c.Op == algorithms.TrialInstead {
			continue
		}
		p := &v.Policies[n] // assigned by fields: a literal would be made and then copied
		n++
		p.Name, p.Tier, p.Private, p.Shadow = c.Policy, a.grade.tier, a.policy.Private, c.Op == algorithms.Trial
		p.Override, p.Banned = a.override, d.banned
		p.Limit, p.Decision, p.Near = c.Limit, c.Decision, m.near(c)
		if c.Op != algorithms.Take {
			continue
		}
		if !c.Decision.Allowed {
			v.RetryAfter = max(v.RetryAfter, c.Decision.RetryAfter)
			if !a.policy.Capacity || d.banned {
				status = http.StatusTooManyRequests
			}
		}
		v.Delay = max(v.Delay, c.Decision.Delay)
	}
	switch {
	case err != nil:
		d.fail(m, r.Context(), err)
	case algorithms.Allowed(d.checks):
		v.Allowed = true
	default:
		v.Status = status
		if !d.banned {
			m.chargeDenials(d)
		}
	}
	if m.observer != nil {
		d.compare(m, r.Context())
	}
}

// near reports whether little is left of a limit.
func (m *Middleware) near(c *algorithms.Check) bool {
	d := &c.Decision
	return d.Source != algorithms.Undecided && d.Remaining*100 <= c.Limit.Burst()*(100-m.nearPercent)
}

// compare tells the observer where candidates would have decided otherwise.
func (d *decision) compare(m *Middleware, ctx context.Context) {
	for i := range d.checks {
		c := &d.checks[i]
		if c.Op != algorithms.TrialInstead {
			continue
		}
		live := &d.checks[i-1]
		if c.Decision.Source == algorithms.Undecided || live.Decision.Source == algorithms.Undecided ||
			c.Decision.Allowed == live.Decision.Allowed {
			continue
		}
		m.observer.Observe(ctx, Event{Kind: Diverged, Policy: live.Policy, Live: live.Decision, Candidate: c.Decision})
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
	for i := range d.checks {
		if d.checks[i].Fail == algorithms.FailClosed { // never a shadow's
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
