// Package settle settles the units that requests have reserved, after the decision:
//
//	Reservations    the units that a request has reserved; settle_at_end.go says what becomes of them
//	Settler         makes settlements off the path of requests
//	Holds           how long requests held the units of a concurrent limit
//
// Package ratelimit opens the Reservations of an admitted request, and serves the
// request with them.
package settle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
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
	for i := range r.all {
		if s == nil && r.all[i].policy.ChargeIf != nil {
			w, s = watchStatus(w)
		}
	}
	r.timed = reflect.TypeOf(next) == timeoutHandler
	r.keepHolding()
	panics := true
	defer func() { r.end(endingOf(s, req, panics)) }()
	next.ServeHTTP(w, req)
	panics = false
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

// ErrNotSettled is ratelimit.ErrNotSettled.
var ErrNotSettled = errors.New("ratelimit: not settled")

var (
	errEnded        = errors.New("the handler has returned")
	errCannotSettle = errors.New("its algorithm can neither return nor force units")
	errBusy         = errors.New("too many settlements are waiting")
)

// Total is ratelimit.Settle.
func Total(ctx context.Context, total int64, policies ...string) error {
	if total < 0 {
		return fmt.Errorf("%w: the total %d is negative", ErrNotSettled, total)
	}
	var errs []error
	found := make([]string, 0, 4)
	for r, ok := ctx.Value(contextKey{}).(*Reservations); ok; r, ok = r.Context.Value(contextKey{}).(*Reservations) {
		var err error
		if found, err = r.settle(total, policies, found); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range policies {
		if !slices.Contains(found, name) {
			errs = append(errs, fmt.Errorf("%w: policy %q has no reservation for this request", ErrNotSettled, name))
		}
	}
	if len(policies) == 0 && len(found) == 0 {
		errs = append(errs, fmt.Errorf("%w: no policy with a Cost has a reservation for this request", ErrNotSettled))
	}
	return errors.Join(errs...)
}

// settle settles the named policies, or all that have a Cost. It appends the
// names of the policies that it has found. If several Middlewares have a policy
// of one name, the innermost policy settles.
func (r *Reservations) settle(total int64, policies, found []string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for i, outer := 0, len(found); i < len(r.all); i++ {
		one := &r.all[i]
		name := one.policy.Name
		if !one.policy.Priced || len(policies) > 0 && !slices.Contains(policies, name) || slices.Contains(found[:outer], name) {
			continue
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
		err := r.settleOne(one, total)
		if one.check.Op == algorithms.TrialInstead && errors.Is(err, errCannotSettle) {
			continue // the policy's own limit settles; a candidate changes nothing
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: policy %q: %w", ErrNotSettled, name, err))
		}
	}
	return found, errors.Join(errs...)
}

func (r *Reservations) settleOne(one *reservation, total int64) error {
	switch {
	case r.ended:
		return errEnded
	case one.concurrent() || one.check.Limit.Algorithm() == leakyBucket:
		return errCannotSettle
	}
	one.total = max(one.total, total)
	if one.policy.ChargeIf == nil && !r.force(one) {
		return errBusy
	}
	return nil
}
