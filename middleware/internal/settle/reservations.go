// The reservations of a request: the units that its policies have reserved. settle_at_end.go says what becomes of them.

package settle

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/findings"
)

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// A Policy is what settling knows of a policy.
type Policy struct {
	Name     string
	Priced   bool                  // it has a Cost
	ChargeIf func(status int) bool // nil: every request counts
	Ended    func(findings.Ending) // receives the endings under ChargeIf
	Holds    *Holds                // of its concurrent limit
	Held     func(findings.Hold)   // receives each hold
}

// Reservations are the units that a request has reserved. They are the context of
// the request's handler, and end with the handler.
type Reservations struct {
	context.Context
	settler *Settler

	mu       sync.Mutex
	ended    bool
	timed    bool // http.TimeoutHandler serves the request
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

// timeoutHandler is the type of http.TimeoutHandler's handlers, which return before the handler inside does.
var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// Serve serves the request with next, and ends the reservations afterwards, even
// after a panic.
func (r *Reservations) Serve(next http.Handler, w http.ResponseWriter, req *http.Request) {
	var s *statusWriter
	if r.watchesStatus() {
		w, s = watchStatus(w)
	}
	r.timed = reflect.TypeOf(next) == timeoutHandler
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
	c.Limit, c.Op, c.Cost = r.inForce(one, op), op, units
	return r.settler.Settle(one.policy.Name, c)
}

// inForce returns the limit that is in force now if it can make the settlement, otherwise the limit that the units
// were taken from: they can only return to its state, and some algorithms cannot force units.
func (r *Reservations) inForce(one *reservation, op algorithms.Op) algorithms.Limit {
	l := r.settler.InForce(one.policy.Name, one.tier, &one.check)
	a := l.Algorithm()
	if a == one.check.Limit.Algorithm() || op == algorithms.Force && a != leakyBucket && !a.Concurrent() {
		return l
	}
	return one.check.Limit
}
