// The tab of a request: the units that its policies have reserved.
//
// A reservation of n units ends when the handler returns:
//
//	the outcome does not count (ChargeIf)       all n units are returned
//	Settle has reported a total below n         the rest is returned
//	Settle has reported a total above n         the excess has been forced already; with ChargeIf
//	                                            it is forced now, because a Force cannot be returned
//	a concurrent limit                          all n units are returned
//	otherwise                                   n units stay charged
//
// Policy.ChargeIf receives the status that the wrapped handler wrote. The last column is for a policy that counts
// failures, status >= 400:
//
//	The answer comes from                                ChargeIf sees      Charged
//	the handler, or a middleware inside                  its status         from 400 up
//	an inner Middleware that refuses                     429, 401, ...      yes
//	net/http, for a handler that wrote nothing           200                no
//	the handler, which panics afterwards                 its status         from 400 up
//	a recovery outside, or no one, after a panic         500                yes
//	no one, because the client has hung up               499                yes
//	a timeout outside, and the handler wrote nothing     504                yes
//	a timeout outside, and the handler wrote too late    the written one    from 400 up
//	the handler, after it took over the connection       101                no
//	gin or echo, without the lines in ChargeIf's doc     200                no
//	this Middleware, which refuses the request           not called         no
//
// A timeout outside is chi's middleware.Timeout, http.TimeoutHandler, or any other deadline of the request's context.

package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// statusClosedRequest is nginx's status for requests whose client hung up before
// the answer.
const statusClosedRequest = 499

// A tab holds the reservations of a request. It is the context of the request's
// handler, and ends with the handler.
type tab struct {
	context.Context
	m *Middleware

	mu           sync.Mutex
	ended        bool
	reservations []reservation
	renewal      *time.Timer // nil: nothing is held
	renewing     int         // renewals on their way
}

// A reservation is the charge of one check.
type reservation struct {
	policy *policy
	tier   string
	check  algorithms.Check
	total  int64 // the largest total of Settle; -1: none
	forced int64 // units beyond the reservation that are charged, or soon will be
}

type tabKey struct{}

func (t *tab) Value(key any) any {
	if key == (tabKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// openTab returns the tab of an admitted request, or nil if nothing is reserved.
func (q *request) openTab() *tab {
	var t *tab
	for i := range q.parts {
		a := &q.parts[i]
		if a.denied > 0 {
			continue
		}
		for _, place := range [...]int{a.own, a.candidate} {
			if place < 0 || !reserves(a.policy, &q.checks[place]) {
				continue
			}
			if t == nil {
				t = &tab{m: q.m}
			}
			res := reservation{policy: a.policy, tier: a.tier, check: q.checks[place], total: -1}
			res.check.Key = strings.Clone(res.check.Key) // its bytes are the request's
			t.reservations = append(t.reservations, res)
		}
	}
	return t
}

// reserves reports whether units of an admitted check may be returned, or forced,
// later. A trial that was not charged counts nothing later.
func reserves(p *policy, c *algorithms.Check) bool {
	if !p.settles() && !c.Limit.Algorithm().Concurrent() {
		return false
	}
	d := &c.Decision
	free := c.Cost == 0 && d.Allowed && d.Source != algorithms.Undecided
	return c.Op == algorithms.Take || d.Receipt.Units() > 0 || free
}

// serve serves the request with next, and ends the tab afterwards, even after a
// panic.
func (t *tab) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	var s *statusWriter
	if t.watchesStatus() {
		w, s = watchStatus(w)
	}
	t.keepHolding()
	panics := true
	defer func() {
		var e ending
		switch {
		case s == nil:
		case s.status != 0:
			e = ending{status: s.status, written: true}
		case panics:
			e.status = http.StatusInternalServerError
		case errors.Is(r.Context().Err(), context.DeadlineExceeded):
			e.status = http.StatusGatewayTimeout // a timeout middleware outside answers so
		case r.Context().Err() != nil:
			e.status = statusClosedRequest
		default:
			e = ending{status: http.StatusOK, silent: true} // net/http's answer if a handler writes nothing
		}
		e.bypassed = s != nil && bypasses(s.ResponseWriter)
		t.end(e)
	}()
	next.ServeHTTP(w, r)
	panics = false
}

func (t *tab) watchesStatus() bool {
	for i := range t.reservations {
		if t.reservations[i].policy.ChargeIf != nil {
			return true
		}
	}
	return false
}

// An ending is how a handler ended. It may be neither written nor silent: after a panic, a hang-up or a deadline, it is
// unknown whether the handler would have written a status.
type ending struct {
	status   int
	written  bool // the handler wrote the status
	silent   bool // it returned without writing one
	bypassed bool // its router may answer outside of the middleware
}

// end settles the reservations.
func (t *tab) end(e ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.renewal != nil {
		t.renewal.Stop()
	}
	if t.renewing == 0 {
		t.returnHolds()
	}
	for i := range t.reservations {
		t.settleAtEnd(&t.reservations[i], e)
	}
}

func (t *tab) settleAtEnd(res *reservation, e ending) {
	outcome := res.policy.ChargeIf
	if outcome != nil {
		t.m.examineOutcome(res.policy, e)
	}
	counts := outcome == nil || outcome(e.status)
	if counts {
		t.force(res)
	}
	rest := res.rest(counts)
	if rest > 0 && res.check.Decision.Receipt.Units() > 0 && !res.concurrent() {
		t.later(res, algorithms.Return, rest)
	}
}

// rest returns how many of the reserved units the request did not need.
func (res *reservation) rest(counts bool) int64 {
	switch {
	case !counts:
		return res.check.Cost
	case res.total >= 0:
		return max(0, res.check.Cost-res.total)
	default:
		return 0
	}
}

// force charges the units of the total that are not charged yet, and reports whether they will be charged.
func (t *tab) force(res *reservation) bool {
	excess := res.total - res.check.Cost - res.forced
	if res.total < 0 || excess <= 0 {
		return true
	}
	if !t.later(res, algorithms.Force, excess) {
		return false
	}
	res.forced += excess
	return true
}

// later settles units under the limit that is in force now.
func (t *tab) later(res *reservation, op algorithms.Op, units int64) bool {
	c := res.check
	if c.Limit = t.inForce(res); op == algorithms.Force {
		c.Limit = t.forcible(res)
	}
	c.Op, c.Cost = op, units
	return t.m.settle(res.policy.Name, c)
}

// inForce returns limitOf, unless that has another algorithm: units can only return to the state that they were taken
// from.
func (t *tab) inForce(res *reservation) algorithms.Limit {
	if l := t.m.limitOf(res); l.Algorithm() == res.check.Limit.Algorithm() {
		return l
	}
	return res.check.Limit
}

// forcible returns limitOf, unless that has an algorithm that cannot force units and would lose them. Overrides may
// have such an algorithm, which requests ignore.
func (t *tab) forcible(res *reservation) algorithms.Limit {
	if l := t.m.limitOf(res); l.Algorithm() != leakyBucket && !l.Algorithm().Concurrent() {
		return l
	}
	return res.check.Limit
}

// limitOf returns the limit that is in force now for a reservation. If its policy is gone, or LimitOf chose its limit,
// the reservation's own limit is in force.
func (m *Middleware) limitOf(res *reservation) algorithms.Limit {
	p, own := m.config.Load().policy(res.policy.Name), res.check.Limit
	switch {
	case p == nil:
		return own
	case res.check.Op == algorithms.TrialInstead && p.candidate != nil:
		return p.candidate.limit
	case res.check.Op == algorithms.TrialInstead:
		return own
	}
	if m.overrides != nil {
		if o, found := m.overrides.Find(p.Name, res.check.Key); found && o.replaces() {
			if p.replaceable(o.Limit) == nil {
				return o.Limit
			}
		}
	}
	if p.LimitOf != nil {
		return own
	}
	if g, ok := p.tiers[res.tier]; ok {
		return g.limit
	}
	return p.base.limit
}
