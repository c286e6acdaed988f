// The last stage: the response. It depends on the verdict alone, so that Deny
// answers like Handler.

package ratelimit

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
	"github.com/penstock-go/penstock/middleware/internal/limits"
	"github.com/penstock-go/penstock/middleware/internal/problem"
	"github.com/penstock-go/penstock/middleware/internal/rpc"
)

const (
	// A service that cannot decide asks clients to come back after one second
	// plus a random part of four more, so that they do not return at once.
	unavailableFor    = time.Second
	unavailableSpread = 4 * time.Second
)

func (m *Middleware) describe(h http.Header, r *http.Request, v *Verdict, s *scratch) {
	switch {
	case v.Allowed:
	case m.refused == nil:
		problem.SetHeader(h)
	default:
		h.Set("Cache-Control", "no-store")
	}
	switch {
	case v.Allowed, v.denied():
		m.describeLimits(h, v, s)
	case v.Status == http.StatusServiceUnavailable:
		slot := time.Now().UnixNano() / int64(unavailableSpread)
		wait := unavailableFor + comeback.Jitter(unavailableSpread, "", m.address(r), slot)
		headers.Draft.Write(h, headers.Response{Denied: true, RetryAfter: wait}) // only Retry-After
	case v.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", v.config.answers.Challenge())
	}
}

// denied reports whether policies denied the request.
func (v *Verdict) denied() bool {
	return v.Status == http.StatusTooManyRequests || v.Status == http.StatusForbidden || v.ofCapacity()
}

// ofCapacity reports whether a 503 comes from Capacity policies.
func (v *Verdict) ofCapacity() bool {
	return v.Status == http.StatusServiceUnavailable && v.RetryAfter > 0
}

func (m *Middleware) describeLimits(h http.Header, v *Verdict, s *scratch) {
	if len(v.Policies) == 0 {
		return
	}
	resp := headers.Response{Quotas: s.quotas[:0], States: s.states[:0], Denied: !v.Allowed, Now: time.Unix(0, v.at)}
	for i := range v.Policies {
		p := &v.Policies[i]
		if p.Shadow || p.spared {
			continue
		}
		resp.RetryAfter = max(resp.RetryAfter, p.wait)
		quota := p.quota
		if quota != nil && p.dynamic {
			quota = s.quota(p)
		}
		if quota == nil {
			continue
		}
		resp.Quotas = append(resp.Quotas, quota)
		if p.Banned || p.Decision.Source == algorithms.Undecided {
			continue
		}
		resp.States = append(resp.States, headers.State{})
		p.state(&resp.States[len(resp.States)-1], quota)
	}
	m.dialect.Write(h, resp)
	s.quotas, s.states, s.used = resp.Quotas[:0], resp.States[:0], 0
}

// A scratch holds the slices that Write reads. Each request has one in its pool
// entry.
type scratch struct {
	quotas  []*headers.Quota
	states  []headers.State
	dynamic []*headers.Quota // limits that are not in the configuration
	used    int              // of dynamic
}

// quota returns the quota of a policy whose limit is not in the configuration; nil if
// headers cannot describe it.
func (s *scratch) quota(p *PolicyVerdict) *headers.Quota {
	if s.used == len(s.dynamic) {
		s.dynamic = append(s.dynamic, new(headers.Quota))
	}
	q := s.dynamic[s.used]
	if q.Set(limits.QuotaConfig(p.Name, p.Limit)) != nil {
		return nil
	}
	s.used++
	return q
}

// state writes the decision of a policy for its quota into s, which is zero. Returning a State would copy it as soon
// as its fields are written, and the processor would wait for them.
func (p *PolicyVerdict) state(s *headers.State, quota *headers.Quota) {
	d := &p.Decision
	s.Quota, s.Denied = quota, !d.Allowed
	s.Remaining, s.ResetAfter, s.UnitAfter = d.Remaining, d.ResetAfter, d.UnitAfter
	if s.RetryAfter = d.RetryAfter; s.Denied {
		s.RetryAfter = p.wait
	}
}

func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, v *Verdict) {
	if m.refused != nil {
		own := v.clone()
		own.answering = true
		m.refused(w, r, own)
		return
	}
	v.answer(w, r)
}

// Refuse answers a refused request as without Options.Refused. Call it there, before the response begins. It panics
// if v allows the request, or if no Middleware has made v.
func Refuse(w http.ResponseWriter, r *http.Request, v Verdict) {
	v.mustRefuse("Refuse")
	problem.SetHeader(w.Header())
	v.answer(w, r)
}

// mustRefuse panics if v refuses no request of a Middleware.
func (v *Verdict) mustRefuse(caller string) {
	switch {
	case v.Allowed || v.Status == 0:
		panic("ratelimit: " + caller + " of a verdict that refuses nothing")
	case v.config == nil:
		panic("ratelimit: " + caller + " of a verdict that no Middleware has made")
	}
}

// answer is the default answer. Its header is prepared.
func (v *Verdict) answer(w http.ResponseWriter, r *http.Request) {
	var names [4]string
	why := v.problem(names[:0])
	if p := rpc.ProtocolOf(r); p != rpc.None {
		p.Refuse(w, r, &rpc.Refusal{Status: v.Status, Denied: v.denied(), Title: why.Title()})
		return
	}
	w.WriteHeader(v.Status)
	_, _ = w.Write(v.config.answers.Body(&why, v.Err)) // a client that has hung up needs no answer
}

// problem says why the request is refused, and names the policies that deny it in names. A hidden one has a name only if
// its limit is Concurrent.
func (v *Verdict) problem(names []string) problem.Refusal {
	why := problem.Refusal{Status: v.Status}
	if !v.denied() {
		return why
	}
	banned, barred, guessed := false, false, false
	for i := range v.Policies {
		p := &v.Policies[i]
		banned = banned || p.Banned
		barred = barred || p.Banned && p.Decision.RetryAfter == algorithms.Never
		guessed = guessed || p.Guessed && !p.Decision.Allowed
		if named := !p.Hidden || p.Limit.Algorithm().Concurrent(); named && !p.Shadow && !p.spared && !p.Decision.Allowed && (p.Banned || p.Decision.Source != algorithms.Undecided) {
			names = append(names, p.Name)
		}
	}
	why.Policies = names
	switch {
	case v.ofCapacity():
		why.Kind = problem.Capacity
	case barred:
		why.Kind = problem.Barred
	case v.Status == http.StatusForbidden:
		why.Kind = problem.Closed
	case guessed:
		why.Kind = problem.Guessed
	case banned:
		why.Kind = problem.Banned
	case v.RetryAfter == algorithms.Never:
		why.Kind = problem.Hopeless
	default:
		why.Kind = problem.Exceeded
	}
	return why
}
