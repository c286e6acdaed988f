// The first stage: identify the client, and find the limits in force.

package ratelimit

import (
	"errors"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/keyfunc"
)

// identify finds the parts of the request, or the reason to refuse it without
// any.
func (q *request) identify() {
	switch {
	case q.m.closed.Load():
		q.refusal = refusal{err: ErrClosed, status: http.StatusServiceUnavailable}
	case q.m.exempt != nil && q.exempt():
		q.verdict.Exempt = true
	default:
		q.identifyAll()
	}
}

// identifyAll makes the parts of all policies that apply. A missing or
// malformed identity refuses the request, whichever policy meets it; so it
// beats bans and unknown keys.
//
// An unknown API key is one more part: the policy that met it first, and the
// client's address as the key. If an override bans keys, the parts are the bans.
func (q *request) identifyAll() {
	q.kinds = q.config.kinds
	if q.config.readsKeys {
		q.http.SetGuard(q)
	}
	var met *policy
	for _, p := range q.config.policies {
		if q.looks && (!p.advertised() || p.onRoute) || p.Skip != nil && p.Skip(q.http.Request) || p.After != "" && !q.stands(p) {
			continue
		}
		start := len(q.keys)
		q.asking = p
		keys, tier, err := p.Key.Append(q.keys, &q.http)
		end := len(keys)
		var sharer tenant
		if err == nil && p.tenants != nil {
			keys, sharer, err = p.tenant(keys, &q.http)
		}
		switch {
		case err == nil:
		case q.m.needsNoKey(p), errors.Is(err, keyfunc.ErrNotCounted):
			continue
		case errors.Is(err, keyfunc.ErrUnknown):
			if met == nil {
				met, q.unknown = p, err
			}
			continue
		default:
			q.refuseKey(p, err)
			return
		}
		q.keys = keys
		a := q.newPart(p, start, end)
		if a.tenant = sharer; q.choose(a, tier) {
			if q.looks {
				a.cost = 0
			} else if p.Cost != nil {
				a.cost = p.Cost(q.http.Request)
			}
			if p.After != "" && a.shadow { // nothing denies then
				q.parts[len(q.parts)-1].shadow = true
				continue
			}
			q.add(a)
		}
	}
	if met != nil {
		q.addGuess(met)
	}
	if q.banned {
		q.unknown = nil
	}
}

func (q *request) refuseKey(p *policy, err error) {
	q.parts, q.unknown = q.parts[:0], nil
	q.refusal = refusal{err: err, status: statusOf(err), outcome: OutcomeKeyError, policy: p}
}

// statusOf returns the status for an error of a key function. An unknown API key is not
// among them: conclude.go answers it after its address was charged.
func statusOf(err error) int {
	var trouble interface{ Unavailable() bool }
	switch {
	case errors.As(err, &trouble) && trouble.Unavailable():
		return http.StatusServiceUnavailable
	case errors.Is(err, keyfunc.ErrMalformed):
		return http.StatusBadRequest
	case errors.Is(err, keyfunc.ErrMissing):
		return http.StatusUnauthorized
	default:
		return http.StatusInternalServerError
	}
}

// newPart makes a part of the key from start to end in q.keys, in the place after the
// last one. A part is large: making one and appending it would copy it twice.
func (q *request) newPart(p *policy, start, end int) *part {
	n := len(q.parts)
	q.parts = slices.Grow(q.parts, 1)
	a := &q.parts[:n+1][n]
	*a = part{}
	a.policy, a.start, a.end, a.cost = p, start, end, 1
	a.own, a.ban, a.candidate, a.share = -1, -1, -1, -1
	return a
}

// add adds the part that newPart has made.
func (q *request) add(a *part) {
	a.shadow = a.shadow || a.policy.Shadow
	q.shadows = q.shadows || a.shadow
	q.parts = q.parts[:len(q.parts)+1]
}
