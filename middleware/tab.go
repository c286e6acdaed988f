package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// statusClosedRequest is how nginx writes down requests whose client hung up
// before they were answered.
const statusClosedRequest = 499

// A tab holds what a request has reserved of policies that settle later: of
// those with Late, with ChargeIf, or with a concurrent limit. It is the context
// of the request's handler, and ends with it.
type tab struct {
	context.Context
	m     *Middleware
	began time.Time

	mu           sync.Mutex
	ended        bool
	reservations []reservation
	renewal      *time.Timer // nil if nothing is held
	renewing     int         // renewals that are being made
}

// A reservation is what one check charged.
type reservation struct {
	policy *policy
	tier   string
	check  algorithms.Check
	total  int64 // the most that was told; -1 if nothing was
	forced int64 // units beyond the reservation that were charged, or soon will be
}

type tabKey struct{ policy string }

func (t *tab) Value(key any) any {
	if k, ok := key.(tabKey); ok && t.has(k.policy) {
		return t
	}
	return t.Context.Value(key)
}

func (t *tab) has(policy string) bool {
	for i := range t.reservations { // their policies never change
		if p := t.reservations[i].policy; p.Late && p.Name == policy {
			return true
		}
	}
	return false
}

// serve lets next serve the request, and settles when that ends, however it does.
func (t *tab) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	var s *statusWriter
	if t.asksStatus() {
		w, s = watchStatus(w)
	}
	t.keepHolding()
	panics := true
	defer func() {
		status := 0
		switch {
		case s == nil:
		case s.status != 0:
			status = s.status
		case panics:
			status = http.StatusInternalServerError
		case r.Context().Err() != nil:
			status = statusClosedRequest
		default:
			status = http.StatusOK // what net/http answers for a handler that wrote nothing
		}
		t.end(status)
	}()
	next.ServeHTTP(w, r.WithContext(t))
	panics = false
}

func (t *tab) asksStatus() bool {
	for i := range t.reservations {
		if t.reservations[i].policy.ChargeIf != nil {
			return true
		}
	}
	return false
}

// end settles what is left to settle. From then on nothing can be told.
func (t *tab) end(status int) {
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
		res := &t.reservations[i]
		t.force(res)
		switch rest := res.rest(status); {
		case res.check.Decision.Receipt.Units() == 0:
		case rest > 0:
			t.later(res, algorithms.Return, rest)
		case res.policy.ChargeIf != nil && time.Since(t.began) > res.check.Limit.Window()/promptly:
			t.move(res)
		}
	}
}

// promptly is the part of a window within which an outcome counts from the
// beginning of its request.
const promptly = 1_000

// move charges a reservation again, at the end of its request, and gives back the
// first charge, whose units may have rolled out of the window meanwhile. So a client
// that begins requests early and ends them together waits these outcomes off, up to
// one burst of debt, and over time sees no more of them than the limit says. While
// Redis is away, the first charge stays, because nobody can give it back.
func (t *tab) move(res *reservation) {
	back, again := res.check, res.check
	back.Limit, back.Op = t.inForce(res), algorithms.Return
	again.Limit, again.Op = t.m.limitOf(res), algorithms.Force
	t.m.settle(res.policy.Name, back, again)
}

// rest returns how many of the reserved units the request did not need, if that
// is more than 0.
func (res *reservation) rest(status int) int64 {
	switch {
	case res.policy.ChargeIf != nil && !res.policy.ChargeIf(status):
		return res.check.Cost
	case res.total >= 0:
		return res.check.Cost - res.total
	default:
		return 0
	}
}

// force charges what exceeds the reservation and was not charged before, and
// reports whether it will be.
func (t *tab) force(res *reservation) bool {
	excess := res.total - res.check.Cost - res.forced
	if excess <= 0 {
		return true
	}
	if !t.later(res, algorithms.Force, excess) {
		return false
	}
	res.forced += excess
	return true
}

// later settles units, under the limit that is in force by now.
func (t *tab) later(res *reservation, op algorithms.Op, units int64) bool {
	c := res.check
	if c.Limit = t.inForce(res); op == algorithms.Force {
		c.Limit = t.m.limitOf(res)
	}
	c.Op, c.Cost = op, units
	return t.m.settle(res.policy.Name, c)
}

// inForce is limitOf, but for another algorithm: what was taken of a state can
// only go back there.
func (t *tab) inForce(res *reservation) algorithms.Limit {
	if l := t.m.limitOf(res); l.Algorithm() == res.check.Limit.Algorithm() {
		return l
	}
	return res.check.Limit
}

// limitOf returns the limit in force for what a reservation is of, which may
// have changed since; its own if its policy is gone.
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
		if o, found := m.overrides.Find(p.Name, res.check.Key); found && o.Replaces() {
			if g := m.gradeFor(p, o.Limit); g != nil {
				return g.limit
			}
		}
	}
	if g, ok := p.tiers[res.tier]; ok {
		return g.limit
	}
	return p.base.limit
}

// Errors of [Settle]. None of them has an effect.
var (
	// ErrNoReservation: no policy of that name with Late reserved anything for
	// the request: there is none, it was skipped, or the context is not that of
	// a request that a [Middleware]'s Handler serves.
	ErrNoReservation = errors.New("middleware: there is no reservation to settle")
	// ErrSettled: the request's handler has returned.
	ErrSettled = errors.New("middleware: the request has ended, and is settled")
	// ErrNegativeTotal: a request cannot cost less than nothing.
	ErrNegativeTotal = errors.New("middleware: the total is negative")
	// ErrBusy: too many settlements wait to be made. What the total exceeds the
	// reservation by is not charged yet; the next Settle, or the end of the
	// handler, tries again.
	ErrBusy = errors.New("middleware: too many settlements are waiting")
)

// Settle says what the request of ctx has cost so far, in units of the policy's
// limit: tokens, bytes, seconds of work. The policy must have Late set; ctx is
// that of the request that the handler was given, or made of it.
//
// It may be called any number of times while the handler runs, from any
// goroutine; the largest total counts. What exceeds the reservation is charged
// at once, also if it does not fit: later requests wait it off, for at most one
// burst. What is left of the reservation is given back when the handler
// returns. Who never calls Settle keeps the reservation charged.
//
// Settle does not wait for the limiter. The error is one of [ErrNoReservation],
// [ErrSettled], [ErrNegativeTotal] and [ErrBusy].
func Settle(ctx context.Context, policy string, total int64) error {
	if total < 0 {
		return fmt.Errorf("%w: policy %q: %d", ErrNegativeTotal, policy, total)
	}
	t, ok := ctx.Value(tabKey{policy}).(*tab)
	if !ok {
		return fmt.Errorf("%w: policy %q", ErrNoReservation, policy)
	}
	return t.settle(policy, total)
}

func (t *tab) settle(policy string, total int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return fmt.Errorf("%w: policy %q", ErrSettled, policy)
	}
	var err error
	for i := range t.reservations {
		res := &t.reservations[i]
		if res.policy.Name != policy {
			continue
		}
		res.total = max(res.total, total)
		if !t.force(res) {
			err = fmt.Errorf("%w: policy %q", ErrBusy, policy)
		}
	}
	return err
}
