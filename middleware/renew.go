package middleware

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A request holds its units of a concurrent limit for as long as its handler
// runs. They are renewed a few times before they would end by themselves.
const (
	renewals = 3
	minHold  = time.Second // or renewals would be most of the traffic
)

// validateConcurrent returns the mistakes of a policy with a concurrent limit.
func validateConcurrent(p Policy, l algorithms.Limit) error {
	var errs []error
	if l.Window() < minHold {
		errs = append(errs, errors.New("a concurrent limit holds for at least a second here"))
	}
	if p.Late || p.ChargeIf != nil {
		errs = append(errs, errors.New("a concurrent limit holds what it takes until the request ends: it cannot be Late or ChargeIf"))
	}
	return errors.Join(errs...)
}

// concurrent reports whether the reservation is of units that the request holds
// while it is served.
func (res *reservation) concurrent() bool { return res.check.Limit.Algorithm().Concurrent() }

// renewEvery returns how often the request's holds are renewed; 0 if it has
// none.
func (t *tab) renewEvery() time.Duration {
	var least time.Duration
	for i := range t.reservations {
		res := &t.reservations[i]
		if !res.concurrent() {
			continue
		}
		if every := t.inForce(res).Window() / renewals; least == 0 || every < least {
			least = every
		}
	}
	return least
}

// keepHolding renews the holds until the request ends.
func (t *tab) keepHolding() {
	every := t.renewEvery()
	if every == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewal = time.AfterFunc(every, func() {
		t.m.later(settlement{do: t.renew}) // in one queue with the rest: Close waits for it
		every := t.renewEvery()            // the limit may have changed
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.ended {
			t.renewal.Reset(every)
		}
	})
}

// renew renews the holds, unless the request has ended. One that ends meanwhile
// leaves its returns to it: what is renewed after its return is held for nobody.
func (t *tab) renew(ctx context.Context) error {
	checks := t.beginRenewal()
	if checks == nil {
		return nil
	}
	err := t.m.limiter.Allow(ctx, checks)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewing--
	if t.ended && t.renewing == 0 {
		t.returnHolds()
	}
	return err
}

func (t *tab) beginRenewal() (checks []algorithms.Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	t.renewing++
	for i := range t.reservations {
		if res := &t.reservations[i]; res.concurrent() {
			c := res.check
			c.Op, c.Limit = algorithms.Renew, t.inForce(res)
			checks = append(checks, c)
		}
	}
	return checks
}

// letGo returns what a request holds that is refused after all.
func (d *decision) letGo(m *Middleware) {
	for i := range d.checks {
		if c := d.checks[i]; c.Limit.Algorithm().Concurrent() && c.Decision.Receipt.Units() > 0 {
			c.Key = strings.Clone(c.Key) // its bytes are the decision's
			c.Op = algorithms.Return
			m.settle(d.asked[i].policy.Name, c)
		}
	}
}

func (t *tab) returnHolds() {
	for i := range t.reservations {
		if res := &t.reservations[i]; res.concurrent() {
			t.later(res, algorithms.Return, res.check.Cost)
		}
	}
}
