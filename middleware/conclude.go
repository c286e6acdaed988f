// The third stage: the verdict. evidence.conclude is pure: it reads no clock,
// asks no limiter, and changes only the verdict. request.conclude collects the
// evidence, and spreads the waits, which depends on the time
// (retry_after.go). fail.go has the verdict where the limiter could not answer, and
// respond.go writes the verdict into the response.

package ratelimit

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A Verdict is the decision of a [Middleware] on a request.
type Verdict struct {
	// Allowed reports whether the request may be served, after Delay.
	Allowed bool

	// Degraded reports whether a limiter that instances share did not decide.
	Degraded bool

	// Exempt reports whether Options.Exempt applies.
	Exempt bool

	// Status is the status of a refusal; 0 if Allowed.
	Status int

	// RetryAfter is the wait of a denied request, before it is spread over clients: [algorithms.Never] if waiting cannot
	// help.
	RetryAfter time.Duration

	// Delay is how long to hold an admitted request.
	Delay time.Duration

	// Policies are the asked policies, hidden ones last.
	Policies []PolicyVerdict

	// Err says why there is no decision: package keyfunc's errors, the limiter's, the
	// context's, or ErrClosed. Clients must not see its text. It is nil if policies
	// have decided.
	Err error

	config    *config // that answers the request
	answering bool    // Options.Refused has it
	at        int64   // Unix time of the decision in ns, if headers tell instants
}

// A PolicyVerdict is a policy's part of a Verdict.
type PolicyVerdict struct {
	Name        string
	Key         string // the counted key, as Offender shows it, of a refused request
	Tier        string // of the identity, if Policy.Tiers has it
	Limit       algorithms.Limit
	Hidden      bool
	Shadow      bool
	Override    bool
	Banned      bool // only RetryAfter of Decision is meaningful
	Guessed     bool // the API key is unknown, or new from an address that sent unknown ones; likewise
	UnknownTier bool // Policy.Tiers lacks the identity's tier
	dynamic     bool // quota is not Limit's
	Outcome     Outcome

	Decision algorithms.Decision

	spared bool // the other policy of its pair speaks

	quota *headers.Quota // nil: headers keep silent
	wait  time.Duration  // RetryAfter, spread
}

// Policy returns the part of a policy, or false if it was not asked.
func (v *Verdict) Policy(name string) (PolicyVerdict, bool) {
	for i := range v.Policies {
		if v.Policies[i].Name == name {
			return v.Policies[i], true
		}
	}
	return PolicyVerdict{}, false
}

// Asked reports whether the limiter was asked: not if this process denies the request by itself, for a ban or for many
// unknown keys.
func (v *Verdict) Asked() bool {
	return len(v.Policies) > 0 && (v.Allowed || v.Err != nil || v.Source() != algorithms.Undecided)
}

// Source is Shared or Local if any policy has that source, otherwise Undecided.
func (v *Verdict) Source() algorithms.Source {
	source := algorithms.Undecided
	for i := range v.Policies {
		if s := v.Policies[i].Decision.Source; s == algorithms.Shared {
			return s
		} else if s != algorithms.Undecided {
			source = s
		}
	}
	return source
}

// evidence is everything that a verdict depends on.
type evidence struct {
	exempt  bool
	refusal refusal // of identify
	parts   []part
	checks  []algorithms.Check // as the limiter answered them
	err     error              // why the limiter could not answer
	unknown error              // the key is unknown: the last part is the address's
	ended   bool               // the context of the request has ended
	asked   bool               // the limiter
	alone   bool               // no other instance shares the limiter
}

// conclude fills in the verdict, with room for one PolicyVerdict per part.
func (q *request) conclude() {
	e := evidence{
		exempt: q.verdict.Exempt, refusal: q.refusal, parts: q.parts, checks: q.checks, err: q.err, unknown: q.unknown, asked: len(q.checks) > 0, alone: q.m.alone,
	}
	if q.err != nil {
		e.ended = q.http.Context().Err() != nil
	}
	room := slices.Grow(q.verdict.Policies, len(q.parts))[:len(q.parts)]
	q.refusal = e.conclude(q.verdict, room)
	if q.verdict.config = q.config; !q.verdict.Allowed {
		q.spread()
	}
}

// conclude makes the verdict in v, and returns why a policy did not decide.
func (e *evidence) conclude(v *Verdict, room []PolicyVerdict) refusal {
	v.Exempt = e.exempt
	if e.refusal.status != 0 {
		v.refuse(e.refusal)
		return e.refusal
	}
	v.Policies = room
	status, admitted, shared := http.StatusServiceUnavailable, true, false
	for i := range e.parts {
		a, p := &e.parts[i], &v.Policies[i]
		own := p.fill(a, e.checks)
		shared = shared || own.Source == algorithms.Shared
		if p.spared = a.spared; a.shadow || a.spared {
			continue
		}
		if !p.Decision.Allowed {
			admitted = false
			v.RetryAfter = max(v.RetryAfter, p.Decision.RetryAfter, own.RetryAfter)
			switch {
			case p.Banned && p.Decision.RetryAfter == algorithms.Never: // until an operator ends it: like Nobody
				status = http.StatusForbidden
			case a.policy.Capacity && !p.Banned && !a.guess:
			case a.limit.Burst() == 0 && !p.Banned: // of the limit Nobody only
				status = http.StatusForbidden
			case status != http.StatusForbidden:
				status = http.StatusTooManyRequests
			}
		}
		v.Delay = max(v.Delay, own.Delay)
	}
	v.Degraded = e.asked && !e.alone && !shared
	why := refusal{}
	switch {
	// If the address may send no further unknown key, that holds whatever the limiter answers.
	case e.err != nil && (e.unknown == nil || e.parts[len(e.parts)-1].denied == 0):
		why = e.fail(v)
	case !admitted:
		v.Status, v.Delay = status, 0
	default:
		v.Allowed = true
	}
	if v.Allowed && e.unknown != nil { // the other policies count the guess, and it is still no identity
		why = refusal{err: e.unknown, status: http.StatusUnauthorized, outcome: OutcomeKeyError}
	}
	if why.status != 0 {
		v.refuse(why)
	}
	for i := range v.Policies {
		its := why
		if e.unknown != nil && !e.parts[i].guess && why.outcome == OutcomeKeyError {
			its = refusal{} // this policy has decided
		}
		p := &v.Policies[i]
		if p.Outcome = v.outcome(p, its); p.Outcome == OutcomeAllowed && e.parts[i].borrowed {
			p.Outcome = OutcomeBorrowed
		}
	}
	return why
}

// fill writes a part's own figures, and returns the decision of its own check.
func (p *PolicyVerdict) fill(a *part, checks []algorithms.Check) (own *algorithms.Decision) {
	// Field by field: a literal, or one assignment of several values, would copy the limit twice.
	p.Name, p.Tier = a.policy.Name, a.tier
	p.Limit = a.limit
	p.Hidden, p.Shadow, p.Override, p.UnknownTier = a.policy.hidden(), a.shadow, a.override, a.unknownTier
	p.dynamic, p.quota = a.configured == nil, cmp.Or(a.configured, a.policy.base).Quota
	if a.own < 0 {
		p.Banned, p.Guessed, p.Decision = a.banned, a.guess, algorithms.Decision{Allowed: a.denied == 0, RetryAfter: a.denied}
		return &p.Decision
	}
	own = &checks[a.own].Decision
	p.Decision = *own
	if a.ban >= 0 && a.deniedByBan(checks) {
		p.Banned, p.Decision = true, checks[a.ban].Decision
	}
	return own
}

// refuse makes v the verdict of a request without a decision.
func (v *Verdict) refuse(why refusal) {
	v.Allowed, v.Status, v.RetryAfter, v.Delay, v.Err = false, why.status, 0, 0, why.err
}
