// The reservations of a request: the units that its policies have reserved.
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

package settle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/findings"
)

// statusClosedRequest is nginx's status for requests whose client hung up before
// the answer.
const statusClosedRequest = 499

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// A Policy is what settling knows of a policy.
type Policy struct {
	Name     string
	Priced   bool                  // it has a Cost
	ChargeIf func(status int) bool // nil: every request counts
	Ended    func(findings.Ending) // receives the endings under ChargeIf
	Holds    *Holds                // of its concurrent limit
	Held     func(time.Duration)   // receives each hold
}

// Reservations are the units that a request has reserved. They are the context of
// the request's handler, and end with the handler.
type Reservations struct {
	context.Context
	settler *Settler

	mu       sync.Mutex
	ended    bool
	all      []reservation
	began    time.Time   // if units are held
	renewal  *time.Timer // nil: nothing is held
	renewing int         // renewals on their way
}

// A reservation is the charge of one check.
type reservation struct {
	policy *Policy
	tier   string
	check  algorithms.Check
	total  int64 // the largest total of Settle; -1: none
	forced int64 // units beyond the reservation that are charged, or soon will be
}

type contextKey struct{}

// Value implements [context.Context].
func (r *Reservations) Value(key any) any {
	if key == (contextKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// Reserve adds the charge of an admitted check to r, which may be nil. It returns r,
// or new Reservations below ctx. It adds nothing if no units of the check may be
// returned or forced later: a trial that was not charged counts nothing later.
func (s *Settler) Reserve(ctx context.Context, r *Reservations, p *Policy, tier string, c *algorithms.Check) *Reservations {
	if !p.Priced && p.ChargeIf == nil && !c.Limit.Algorithm().Concurrent() {
		return r
	}
	d := &c.Decision
	free := c.Cost == 0 && d.Allowed && d.Source != algorithms.Undecided
	if c.Op != algorithms.Take && d.Receipt.Units() == 0 && !free {
		return r
	}
	if r == nil {
		r = &Reservations{Context: ctx, settler: s}
	}
	one := reservation{policy: p, tier: tier, check: *c, total: -1}
	one.check.Key = strings.Clone(c.Key) // its bytes are the request's
	r.all = append(r.all, one)
	return r
}

// Serve serves the request with next, and ends the reservations afterwards, even
// after a panic.
func (r *Reservations) Serve(next http.Handler, w http.ResponseWriter, req *http.Request) {
	var s *statusWriter
	if r.watchesStatus() {
		w, s = watchStatus(w)
	}
	r.keepHolding()
	panics := true
	defer func() { r.end(endingOf(s, req, panics)) }()
	next.ServeHTTP(w, req)
	panics = false
}

func (r *Reservations) watchesStatus() bool {
	for i := range r.all {
		if r.all[i].policy.ChargeIf != nil {
			return true
		}
	}
	return false
}

// An ending is how a handler ended, and the status that counts.
type ending struct {
	findings.Ending
	status int
}

// endingOf returns how the handler of a request ended; s may be nil.
func endingOf(s *statusWriter, r *http.Request, panicked bool) (e ending) {
	if s == nil {
		return e
	}
	e.Writer = s.ResponseWriter
	switch {
	case s.status != 0:
		e.status, e.Written = s.status, true
	case panicked:
		e.status = http.StatusInternalServerError
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		e.status = http.StatusGatewayTimeout // a timeout middleware outside answers so
	case r.Context().Err() != nil:
		e.status = statusClosedRequest
	default:
		e.status, e.Silent = http.StatusOK, true // net/http's answer if a handler writes nothing
	}
	return e
}

// end settles the reservations.
func (r *Reservations) end(e ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.renewal != nil {
		r.renewal.Stop()
	}
	if r.renewing == 0 {
		r.returnHolds()
	}
	for i := range r.all {
		r.settleAtEnd(&r.all[i], e)
	}
}

func (r *Reservations) settleAtEnd(one *reservation, e ending) {
	if one.concurrent() { // returnHolds has returned the units
		if one.check.Op != algorithms.TrialInstead {
			held := time.Since(r.began)
			one.policy.Holds.add(held)
			one.policy.Held(held)
		}
		return
	}
	counts := r.counts(one.policy, e)
	if counts {
		r.force(one)
	}
	rest := one.rest(counts)
	if rest > 0 && one.check.Decision.Receipt.Units() > 0 {
		r.later(one, algorithms.Return, rest)
	}
}

// counts reports whether the outcome of the request counts. If ChargeIf panics, it
// counts, and the other policies settle all the same.
func (r *Reservations) counts(p *Policy, e ending) (counts bool) {
	if p.ChargeIf == nil {
		return true
	}
	defer func() {
		if why := recover(); why != nil {
			counts = true
			r.settler.Done(Report{Policy: p.Name, Err: fmt.Errorf("%w: ChargeIf panicked: %v", ErrNotSettled, why)})
		}
	}()
	p.Ended(e.Ending)
	return p.ChargeIf(e.status)
}

// rest returns how many of the reserved units the request did not need.
func (one *reservation) rest(counts bool) int64 {
	switch {
	case !counts:
		return one.check.Cost
	case one.total >= 0:
		return max(0, one.check.Cost-one.total)
	default:
		return 0
	}
}

// force charges the units of the total that are not charged yet, and reports whether they will be charged.
func (r *Reservations) force(one *reservation) bool {
	excess := one.total - one.check.Cost - one.forced
	if one.total < 0 || excess <= 0 {
		return true
	}
	if !r.later(one, algorithms.Force, excess) {
		return false
	}
	one.forced += excess
	return true
}

// later settles units under the limit that is in force now.
func (r *Reservations) later(one *reservation, op algorithms.Op, units int64) bool {
	c := one.check
	if c.Limit = r.inForce(one); op == algorithms.Force {
		c.Limit = r.forcible(one)
	}
	c.Op, c.Cost = op, units
	return r.settler.Settle(one.policy.Name, c)
}

// inForce returns the limit in force, unless that has another algorithm: units can only return to the state that they
// were taken from.
func (r *Reservations) inForce(one *reservation) algorithms.Limit {
	if l := r.settler.InForce(one.policy.Name, one.tier, &one.check); l.Algorithm() == one.check.Limit.Algorithm() {
		return l
	}
	return one.check.Limit
}

// forcible returns the limit in force, unless that has an algorithm that cannot force units and would lose them.
// Overrides may have such an algorithm, which requests ignore.
func (r *Reservations) forcible(one *reservation) algorithms.Limit {
	if l := r.settler.InForce(one.policy.Name, one.tier, &one.check); l.Algorithm() != leakyBucket && !l.Algorithm().Concurrent() {
		return l
	}
	return one.check.Limit
}
