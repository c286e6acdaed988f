package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Ban locks out repeat offenders. After Denials denials Within a period, the
// policy denies every request of the key for a time, on all instances. While
// Redis is down, no key is banned. Do not ban keys that many clients share,
// such as a company's address.
type Ban struct {
	// Denials within Within bring a ban: 1 to 1 000.
	Denials int64
	Within  time.Duration

	// For is the length of the first ban, in whole seconds. Each further ban lasts
	// twice as long as the one before, up to Max; a Max of 0 means For. One
	// doubling is forgotten per 2·Max. A changed Max ends all bans.
	For, Max time.Duration
}

const (
	maxBanDenials = 1_000
	maxBan        = 200 * 24 * time.Hour // twice that is a window
)

// validate reports the misconfigurations of a policy's ban.
func (b *Ban) validate(p *Policy) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("ban: "+format, args...)) }
	if p.Shadow {
		refuse("Shadow and Ban cannot be combined: a shadow policy denies nothing")
	}
	if p.Capacity {
		refuse("Capacity and Ban cannot be combined: one client would lock out all")
	}
	if b.Denials < 1 || b.Denials > maxBanDenials {
		refuse("Denials is %d; want 1 to %d", b.Denials, maxBanDenials)
	} else if err := b.strikes().Validate(); err != nil {
		refuse("Within: %w", err)
	}
	if b.For < time.Second || b.For%time.Second != 0 || b.For > maxBan {
		refuse("For is %v; want whole seconds, up to %v", b.For, maxBan)
	}
	if b.Max != 0 && (b.Max < b.For || b.Max%time.Second != 0 || b.Max > maxBan) {
		refuse("Max is %v; want whole seconds, from For up to %v", b.Max, maxBan)
	}
	return errors.Join(errs...)
}

// strikes is the limit of denials without a ban.
func (b *Ban) strikes() algorithms.Limit { return algorithms.SlidingWindowLog(b.Denials, b.Within) }

// A banner is a Ban, compiled. Its counts have keyspaces beside the policy's.
type banner struct {
	Ban
	strikes, bans, ban string           // keyspaces
	repeats            algorithms.Limit // of bans; the units in use are doublings

	// A ban is a debt of a bucket that drains one unit a second: a request that
	// costs nothing is denied while more than the burst is in use.
	debt *grade
}

func newBanner(p *Policy) *banner {
	b := &banner{Ban: *p.Ban, strikes: p.Name + "~strikes", bans: p.Name + "~bans"}
	b.Max = max(b.Max, b.For)
	// The debt of a ban depends on Max, so each Max has its own key.
	b.ban = fmt.Sprintf("%s~ban%d", p.Name, b.Max/time.Second)
	doublings := int64(1)
	for d := b.For; d < b.Max; d *= 2 {
		doublings++
	}
	b.repeats = algorithms.TokenBucket(1, 2*b.Max).WithBurst(doublings)
	b.debt = &grade{limit: algorithms.TokenBucket(1, time.Second).WithBurst(int64(b.Max / time.Second))}
	return b
}

// check asks whether a key is banned.
func (b *banner) check(key string) algorithms.Check {
	return algorithms.Check{Policy: b.ban, Key: key, Limit: b.debt.limit, Fail: algorithms.FailOpen}
}

// BanChecks is for programs that show or lift bans. If a key is banned, asks is
// denied and not Undecided, and RetryAfter says when the ban ends. lifts ends
// the ban and forgets the denials. Both are nil without a Ban.
func (p *Policy) BanChecks(key string) (asks, lifts []algorithms.Check) {
	if p.Ban == nil {
		return nil, nil
	}
	b := newBanner(p)
	return []algorithms.Check{b.check(key)}, []algorithms.Check{
		{Policy: b.strikes, Key: key, Limit: b.Ban.strikes(), Op: algorithms.Reset},
		{Policy: b.bans, Key: key, Limit: b.repeats, Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt.limit, Op: algorithms.Reset},
	}
}

// countTowardsBan counts a denial of a key towards its ban.
func (m *Middleware) countTowardsBan(p *policy, key string) {
	if m.replay != nil { // its clock stands until the next request
		_ = m.strike(context.Background(), p, key)
		return
	}
	m.later(settlement{denial: true, do: func(ctx context.Context) error { return m.strike(ctx, p, key) }})
}

// strike counts one denial of a key, and bans the key after the last denial
// that fits. Of several denials at once, exactly one is the last that fits.
func (m *Middleware) strike(ctx context.Context, p *policy, key string) error {
	b := p.banner
	last, err := m.takeOne(ctx, b.strikes, key, b.Ban.strikes())
	if err != nil || !last.Allowed || last.Remaining > 0 || last.Source == algorithms.Undecided {
		return err
	}
	repeat, err := m.takeOne(ctx, b.bans, key, b.repeats)
	if err != nil || repeat.Source == algorithms.Undecided {
		return err
	}
	before := b.repeats.Burst() - repeat.Remaining
	if repeat.Allowed {
		before--
	}
	length := b.Max
	if doublings := uint(before); b.For <= b.Max>>doublings {
		length = b.For << doublings
	}
	err = m.limiter.Allow(ctx, []algorithms.Check{
		{Policy: b.strikes, Key: key, Limit: b.Ban.strikes(), Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt.limit, Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt.limit, Op: algorithms.Force, Cost: b.debt.limit.Burst() + int64(length/time.Second)},
	})
	if err == nil {
		m.observe(ctx, &Event{Kind: Banned, Policy: p.Name, Elapsed: length})
	}
	return err
}

func (m *Middleware) takeOne(ctx context.Context, policy, key string, l algorithms.Limit) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: policy, Key: key, Limit: l, Cost: 1, Fail: algorithms.FailOpen, Exact: true}}
	err := m.limiter.Allow(ctx, checks)
	return checks[0].Decision, err
}
