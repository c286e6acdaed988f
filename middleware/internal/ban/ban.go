// Package ban counts the denials of a key, and bans the key after too many.
//
// A ban is a debt of a bucket that drains one unit a second: a request that costs
// nothing is denied while more than the burst is in use. The counts have keyspaces
// beside the policy's.
package ban

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	maxDenials = 1_000
	maxLength  = 200 * 24 * time.Hour // twice that is a window
)

// A Rule is a ratelimit.Ban, whose documentation explains the fields.
type Rule struct {
	Denials  int64
	Within   time.Duration
	For, Max time.Duration
}

// Validate reports every misconfiguration.
func (r *Rule) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("ban: "+format, args...)) }
	if r.Denials < 1 || r.Denials > maxDenials {
		refuse("Denials is %d; want 1 to %d", r.Denials, maxDenials)
	} else if err := r.strikes().Validate(); err != nil {
		refuse("Within: %w", err)
	}
	if r.For < time.Second || r.For%time.Second != 0 || r.For > maxLength {
		refuse("For is %v; want whole seconds, up to %v", r.For, maxLength)
	}
	if r.Max != 0 && (r.Max < r.For || r.Max%time.Second != 0 || r.Max > maxLength) {
		refuse("Max is %v; want whole seconds, from For up to %v", r.Max, maxLength)
	}
	return errors.Join(errs...)
}

// strikes is the limit of denials without a ban.
func (r *Rule) strikes() algorithms.Limit { return algorithms.SlidingWindowLog(r.Denials, r.Within) }

// Bans are the bans of a policy.
type Bans struct {
	Rule
	strikes, bans, ban string           // keyspaces
	repeats            algorithms.Limit // of bans; the units in use are doublings
	debt               algorithms.Limit
}

// New returns the bans of a policy by a valid rule.
func New(policy string, r Rule) *Bans {
	r.Max = max(r.Max, r.For)
	doublings := int64(1)
	for d := r.For; d < r.Max; d *= 2 {
		doublings++
	}
	return &Bans{
		Rule: r, strikes: policy + "~strikes", bans: policy + "~bans",
		ban:     fmt.Sprintf("%s~ban%d", policy, r.Max/time.Second), // the debt depends on Max, so each Max has its own key
		repeats: algorithms.TokenBucket(1, 2*r.Max).WithBurst(doublings),
		debt:    algorithms.TokenBucket(1, time.Second).WithBurst(int64(r.Max / time.Second)),
	}
}

// Check fills in the check that asks whether a key is banned: it is denied and not
// Undecided, and RetryAfter says when the ban ends.
func (b *Bans) Check(c *algorithms.Check, key string) {
	c.Policy, c.Key, c.Limit, c.Fail = b.ban, key, b.debt, algorithms.FailOpen
}

// Lifts returns the settlements that end the ban of a key and forget its denials.
func (b *Bans) Lifts(key string) []algorithms.Check {
	return []algorithms.Check{
		{Policy: b.strikes, Key: key, Limit: b.Rule.strikes(), Op: algorithms.Reset},
		{Policy: b.bans, Key: key, Limit: b.repeats, Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt, Op: algorithms.Reset},
	}
}

// Strike counts one denial of a key, and bans the key after the last denial that
// fits. It returns the length of the ban, or 0. Of several denials at once, exactly
// one is the last that fits.
func (b *Bans) Strike(ctx context.Context, l algorithms.Limiter, key string) (banned time.Duration, err error) {
	last, err := takeOne(ctx, l, b.strikes, key, b.Rule.strikes())
	if err != nil || !last.Allowed || last.Remaining > 0 || last.Source == algorithms.Undecided {
		return 0, err
	}
	repeat, err := takeOne(ctx, l, b.bans, key, b.repeats)
	if err != nil || repeat.Source == algorithms.Undecided {
		return 0, err
	}
	before := b.repeats.Burst() - repeat.Remaining
	if repeat.Allowed {
		before--
	}
	length := b.Max
	if doublings := uint(before); b.For <= b.Max>>doublings {
		length = b.For << doublings
	}
	return length, l.Allow(ctx, []algorithms.Check{
		{Policy: b.strikes, Key: key, Limit: b.Rule.strikes(), Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt, Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt, Op: algorithms.Force, Cost: b.debt.Burst() + int64(length/time.Second)},
	})
}

func takeOne(ctx context.Context, limiter algorithms.Limiter, policy, key string, l algorithms.Limit) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: policy, Key: key, Limit: l, Cost: 1, Fail: algorithms.FailOpen, Exact: true}}
	err := limiter.Allow(ctx, checks)
	return checks[0].Decision, err
}
