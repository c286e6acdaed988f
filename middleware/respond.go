// The last stage: the response. It depends on the verdict alone, so that Deny
// answers like Handler.

package ratelimit

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
	"github.com/penstock-go/penstock/middleware/internal/problem"
	"github.com/penstock-go/penstock/middleware/internal/rpc"
)

const (
	// A service that cannot decide asks clients to come back after one second
	// plus a random part of four more, so that they do not return at once.
	unavailableFor    = time.Second
	unavailableSpread = 4 * time.Second
)

// describe sets the header of the response to a request.
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
		h.Set("WWW-Authenticate", v.config.challenge)
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

// describeLimits writes the fields of the dialect.
func (m *Middleware) describeLimits(h http.Header, v *Verdict, s *scratch) {
	if len(v.Policies) == 0 {
		return
	}
	resp := headers.Response{Quotas: s.quotas[:0], States: s.states[:0], Denied: !v.Allowed, Now: time.Unix(0, v.at)}
	for i := range v.Policies {
		p := &v.Policies[i]
		if p.Shadow {
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
	if q.Set(quotaConfig(p.Name, p.Limit)) != nil {
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

// refuse answers a refused request.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, v *Verdict) {
	if m.refused != nil {
		own := v.clone()
		own.answering = true
		m.refused(w, r, own)
		return
	}
	v.answer(w, r)
}

// Refuse answers a refused request as without Options.Refused: with an
// application/problem+json, or in the terms of gRPC or Connect. Call it in
// Options.Refused, before the response begins. It panics if v allows the
// request, or if no Middleware has made v.
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
	if p := rpc.ProtocolOf(r); p != rpc.None {
		p.Refuse(w, r, &rpc.Refusal{Status: v.Status, Denied: v.denied(), Title: v.title()})
		return
	}
	w.WriteHeader(v.Status)
	_, _ = w.Write(v.config.body(v)) // a client that has hung up needs no answer
}

// title returns the title of the refusal's problem, for clients that read no
// problem.
func (v *Verdict) title() string {
	switch {
	case v.ofCapacity():
		return "Temporary Reduced Capacity"
	case v.Status == http.StatusForbidden:
		return "No Requests Allowed"
	case v.Status != http.StatusTooManyRequests:
		return http.StatusText(v.Status)
	case slices.ContainsFunc(v.Policies, func(p PolicyVerdict) bool { return p.Banned || p.Guessed && !p.Decision.Allowed }):
		return "Abnormal Usage Detected"
	default:
		return "Quota Exceeded"
	}
}

// malformed returns the body of a 400. It says which identity is malformed, in the words of package keyfunc: a client
// must not read the text of a service's error.
func malformed(err error) []byte {
	body := problem.Body(http.StatusBadRequest, "")
	var of interface{ ForClient() string }
	if errors.As(err, &of) {
		return problem.WithDetail(body, of.ForClient())
	}
	return body
}

// body returns the body of an answer. Usually one policy denies, and its body
// is ready.
func (c *config) body(v *Verdict) []byte {
	switch {
	case v.Status == http.StatusUnauthorized:
		return c.missing
	case v.Status == http.StatusBadRequest:
		return malformed(v.Err)
	case !v.denied():
		return problem.Body(v.Status, "")
	}
	banned, guessed := false, false
	var room [4]string
	names := room[:0] // of the policies that deny; a hidden one has a name only if its limit is Concurrent
	for i := range v.Policies {
		p := &v.Policies[i]
		banned = banned || p.Banned
		guessed = guessed || p.Guessed && !p.Decision.Allowed
		if named := !p.Hidden || p.Limit.Algorithm().Concurrent(); named && !p.Shadow && !p.Decision.Allowed && (p.Banned || p.Decision.Source != algorithms.Undecided) {
			names = append(names, p.Name)
		}
	}
	switch {
	case v.ofCapacity():
		return problem.Body(http.StatusServiceUnavailable, "temporary-reduced-capacity", names...)
	case guessed:
		return problem.WithDetail(problem.Body(http.StatusTooManyRequests, "abnormal-usage-detected", names...),
			"This address sent unknown API keys, so keys that are new from it are checked slowly. Send the request again after Retry-After.")
	case banned && len(names) == 1:
		return c.bodies[names[0]].banned
	case banned:
		return problem.Body(http.StatusTooManyRequests, "abnormal-usage-detected", names...)
	case v.Status == http.StatusForbidden && len(names) == 1:
		return c.bodies[names[0]].closed
	case v.Status == http.StatusForbidden:
		return problem.Body(http.StatusForbidden, "no-requests-allowed", names...)
	case v.RetryAfter == algorithms.Never:
		return problem.WithDetail(problem.Body(http.StatusTooManyRequests, "quota-exceeded", names...),
			"The request costs more than the limit allows at once. No wait helps.")
	case len(names) == 1:
		return c.bodies[names[0]].exceeded
	default:
		return problem.Body(http.StatusTooManyRequests, "quota-exceeded", names...)
	}
}
