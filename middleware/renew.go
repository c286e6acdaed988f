package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A request holds its units of a concurrent limit until its handler returns. The
// middleware renews them a few times before their hold would end.
const (
	renewals = 3
	minHold  = time.Second // shorter holds would make renewals most of the traffic
)

// validateConcurrent reports the misconfigurations of a policy with a concurrent
// limit.
func (p *Policy) validateConcurrent(l algorithms.Limit) error {
	var errs []error
	if l.Window() < minHold {
		errs = append(errs, fmt.Errorf("a concurrent limit's hold time is %v: want at least %v", l.Window(), minHold))
	}
	if p.ChargeIf != nil {
		errs = append(errs, errors.New("a concurrent limit and ChargeIf cannot be combined: the units come back when the handler returns"))
	}
	return errors.Join(errs...)
}

// concurrent reports whether the request holds the reserved units while it is
// served.
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

// renew renews the holds, unless the request has ended. If the request ends
// during a renewal, the last renewal returns the holds: a renewal after the
// return would hold the unit again.
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

func (t *tab) returnHolds() {
	for i := range t.reservations {
		if res := &t.reservations[i]; res.concurrent() {
			t.later(res, algorithms.Return, res.check.Cost)
		}
	}
}
