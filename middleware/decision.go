package middleware

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

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
	keyless *policy         // whose key is an error, if the request is refused for it
	start   time.Duration   // when it began, if there is an observer
	now     time.Time       // of the answer, if headers say instants

	keys     []byte // of all checks, one after the other
	checks   []algorithms.Check
	asked    []asked // of each check
	policies int     // that were asked: checks, without candidates
	mix      mix     // of the limits that the request may meet
	banned   bool    // and so nobody is asked: the checks are those of bans
	settles  bool    // what is taken is settled when the request ends

	quotas []*headers.Quota
	states []headers.State
}

// asked is on whose behalf a check asks.
type asked struct {
	policy     *policy
	grade      *grade
	override   bool
	ban        bool   // whether the key is banned: it asks before the policy's own check does
	start, end int    // of the check's key
	hash       uint64 // of the key, if there is an observer
}

var decisions = sync.Pool{New: func() any { return new(decision) }}

func newDecision() *decision { return decisions.Get().(*decision) }

// free gives d back, without what belongs to its request. What stays in its
// slices is of the middleware or of d itself, and is written over before it is
// read: clearing it would take as long as the rest of what is done here.
func (d *decision) free() {
	d.verdict, d.carrier, d.err, d.trouble, d.keyless, d.policies = Verdict{}, nil, nil, nil, nil, 0
	d.config, d.banned, d.settles = nil, false, false
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
	if m.exempt != nil && d.exempts(m, r) {
		d.verdict.Allowed, d.verdict.Exempt = true, true
		d.carrier, _ = newVerdictContext(0)
		return
	}
	unknown, err := d.collect(m, r)
	if err != nil {
		d.verdict.failure = OutcomeKeyError
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
		d.letGo(m)
		// Its try was paid for. It is no identity all the same.
		d.verdict.failure = OutcomeKeyError
		d.refuse(http.StatusUnauthorized, unknown)
	}
}

// decide asks the limiter about the checks, unless there is a ban.
func (d *decision) decide(m *Middleware, r *http.Request) {
	var err error
	if !d.banned {
		ctx := r.Context()
		if d.settles {
			// Who hangs up meanwhile would leave what is taken with nobody
			// who knows of it, and nobody would give it back.
			ctx = context.WithoutCancel(ctx)
		}
		err = m.limiter.Allow(ctx, d.checks)
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
	d.mix = d.config.mix
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
			d.keyless = p
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
		d.keys, d.checks, d.asked, d.policies, d.mix = d.keys[:0], d.checks[:0], d.asked[:0], 0, d.config.mix
		if d.keys, err = m.clientIP.Append(d.keys, r); err != nil {
			d.keyless = met
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
	if p.banner != nil && op == algorithms.Take {
		d.checks = append(d.checks, p.banner.check())
		d.asked = append(d.asked, asked{policy: p, grade: p.banner.debt, ban: true, start: start, end: len(d.keys)})
	}
	a := asked{policy: p, grade: g, override: u.found, start: start, end: len(d.keys)}
	d.checks = append(d.checks, algorithms.Check{Policy: p.Name, Limit: g.limit, Cost: cost, Op: op, Fail: fail, Exact: p.exact()})
	d.asked = append(d.asked, a)
	d.policies++
	d.settles = d.settles || p.settles() || g.limit.Algorithm().Concurrent()
	if p.candidate != nil && g == p.base && op == algorithms.Take {
		a.grade = p.candidate
		d.checks = append(d.checks, algorithms.Check{Policy: p.trial, Limit: a.grade.limit, Cost: cost, Op: algorithms.TrialInstead})
		d.asked = append(d.asked, a)
	}
}
