// The second stage: one call of the limiter.

package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// check asks the limiter about the parts that are not decided without it.
func (q *request) check() {
	for i := range q.parts {
		if a := &q.parts[i]; a.denied == 0 && !a.guess {
			q.addChecks(a)
		}
	}
	if len(q.checks) == 0 {
		return
	}
	if q.unknown != nil {
		q.addDenial()
	}
	ctx := q.http.Context()
	if q.settles {
		// If the client hangs up, the limiter still answers. Otherwise the
		// units would stay charged, and no request could return them.
		ctx = context.WithoutCancel(ctx)
	}
	if !q.m.lends.limiter { // it may keep keys
		for i := range q.checks {
			q.checks[i].Key = strings.Clone(q.checks[i].Key)
		}
	}
	if q.err = q.unheld(); q.err == nil {
		q.err = q.m.limiter.Allow(ctx, q.checks)
	}
	if q.m.dialect&headers.XRateLimit != 0 {
		q.verdict.at = time.Now().UnixNano()
	}
	if q.err != nil {
		for i := range q.checks {
			q.checks[i].Decision = algorithms.Decision{}
		}
	}
	if q.config.pairs {
		q.pairUp()
	}
	for i := range q.parts {
		a := &q.parts[i]
		if !a.concurrent {
			continue
		}
		// The limiter answers with the hold, because it cannot know when a running request ends.
		if d := &q.checks[a.own].Decision; !d.Allowed && d.Source != algorithms.Undecided && d.RetryAfter != algorithms.Never {
			d.RetryAfter = a.policy.settling.Holds.Median(a.limit.Window())
		}
	}
}

// unheld returns an error if Check would take units that it cannot hold and return. They would stay taken for the hold
// time. A replay ends its requests itself.
func (q *request) unheld() error {
	if q.handled || q.m.replay != nil {
		return nil
	}
	for i := range q.checks {
		if c := &q.checks[i]; c.Limit.Algorithm().Concurrent() {
			return fmt.Errorf("ratelimit: %w: Check cannot hold the limit %v of policy %q: use Handler", algorithms.ErrInvalid, c.Limit, c.Policy)
		}
	}
	return nil
}

// addChecks adds the checks of a part: the ban check of its key, its own, and
// the candidate's.
func (q *request) addChecks(a *part) {
	p, key := a.policy, q.key(a)
	op, fail := algorithms.Take, p.Fail
	if a.shadow {
		op = algorithms.Trial
		if fail == algorithms.FailClosed {
			fail = algorithms.FailLocal // a policy that denies nothing cannot fail closed
		}
	}
	if p.bans != nil && op == algorithms.Take {
		var c *algorithms.Check
		c, a.ban = q.newCheck()
		p.bans.Check(c, key)
	}
	if a.tenant.weight > 0 {
		if q.addShare(a, op, fail); op == algorithms.Take {
			op = algorithms.TakeReserved
		}
	} else if p.After != "" && op == algorithms.Take && !q.looks {
		op = algorithms.TakeElse // identify has put the other policy just before it
	}
	c, place := q.newCheck()
	a.own = place
	c.Limit = a.limit // alone: an assignment of several values would copy it twice
	c.Policy, c.Key, c.Cost = p.Name, key, a.cost
	c.Op, c.Fail, c.Exact = op, fail, p.Exact || p.ChargeIf != nil || q.looks
	if p.candidate != nil && a.configured == p.base && op == algorithms.Take && !q.looks {
		c, a.candidate = q.newCheck()
		c.Limit = p.candidate.Limit
		c.Policy, c.Key, c.Cost = p.trial, key, a.cost
		c.Op = algorithms.TrialInstead
	}
	q.settles = q.settles || p.settles || a.concurrent
}

// addDenial adds a check that denies, if the guess is denied: so the other policies
// tell their waits, and charge nothing.
func (q *request) addDenial() {
	a := &q.parts[len(q.parts)-1]
	if a.denied == 0 {
		return
	}
	c, _ := q.newCheck()
	c.Policy, c.Key, c.Limit, c.Cost = a.policy.Name, q.key(a), algorithms.Nobody(), 1
}

// newCheck adds a zero check and returns its place, for the caller to fill in.
// A Check is large: making one and appending it would copy it twice.
func (q *request) newCheck() (c *algorithms.Check, place int) {
	place = len(q.checks)
	q.checks = slices.Grow(q.checks, 1)[:place+1]
	c = &q.checks[place]
	*c = algorithms.Check{}
	return c, place
}

// deniedByBan reports whether the ban of the part's key denies the request. The part
// has a check of bans.
func (a *part) deniedByBan(checks []algorithms.Check) bool {
	d := &checks[a.ban].Decision
	return !d.Allowed && d.Source != algorithms.Undecided
}
