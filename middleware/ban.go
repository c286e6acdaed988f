package middleware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A Ban locks out who does not stop: after Denials of the policy's denials
// Within a period, every request of the key is denied for a time, as
// abnormal-usage-detected, whatever has come back meanwhile. It counts for all
// instances that share the limiter, and begins a moment after the denial that
// brings it, whose Retry-After does not know of it yet. While the shared limiter
// cannot be reached, nobody is banned.
//
// It costs one more key to be read with the policy's own, and who is denied has
// three, one of them a log of up to Denials entries. Not for
// keys that many clients share, such as the address of a company: one of them
// locks out all.
type Ban struct {
	// Denials within Within bring a ban: 1 to 1 000.
	Denials int64
	Within  time.Duration

	// For is how long the first ban lasts, and each further one lasts twice as
	// long as that before, up to Max; 0 means For. Both are whole seconds. One
	// doubling is forgotten for each 2·Max that pass, so never while bans
	// follow each other. To change Max ends all bans.
	For, Max time.Duration
}

const (
	maxBanDenials = 1_000
	maxBan        = 200 * 24 * time.Hour // twice that is a window
)

// validate returns the mistakes of the ban of a policy.
func (b *Ban) validate(p Policy) error {
	var errs []error
	mistake := func(format string, args ...any) { errs = append(errs, fmt.Errorf("ban: "+format, args...)) }
	if p.Shadow || p.Private {
		mistake("a shadow policy denies nothing, and a private one would ban everybody")
	}
	if b.Denials < 1 || b.Denials > maxBanDenials {
		mistake("Denials is %d; want 1 to %d", b.Denials, maxBanDenials)
	} else if err := b.strikes().Validate(); err != nil {
		mistake("Within: %w", err)
	}
	if b.For < time.Second || b.For%time.Second != 0 || b.For > maxBan {
		mistake("For is %v; want whole seconds, up to %v", b.For, maxBan)
	}
	if b.Max != 0 && (b.Max < b.For || b.Max%time.Second != 0 || b.Max > maxBan) {
		mistake("Max is %v; want whole seconds, from For up to %v", b.Max, maxBan)
	}
	return errors.Join(errs...)
}

// strikes is the limit of denials that bring no ban.
func (b *Ban) strikes() algorithms.Limit { return algorithms.SlidingWindowLog(b.Denials, b.Within) }

// A banner is a Ban, ready for use. What it counts has keyspaces beside the
// policy's.
type banner struct {
	Ban
	strikes, bans, ban string           // keyspaces
	repeats            algorithms.Limit // of bans; what is in use are doublings

	// A ban is a debt of a bucket that drains one unit a second: a request that
	// costs nothing is denied while more than the burst is in use.
	debt *grade
}

func newBanner(p Policy) *banner {
	b := &banner{Ban: *p.Ban, strikes: p.Name + "~strikes", bans: p.Name + "~bans"}
	b.Max = max(b.Max, b.For)
	// How much debt a ban is depends on Max, and so does its place.
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
func (b *banner) check() algorithms.Check {
	return algorithms.Check{Policy: b.ban, Limit: b.debt.limit, Fail: algorithms.FailOpen}
}

// forgiven are the settlements that leave nothing of bans and denials.
func (b *banner) forgiven(key string) []algorithms.Check {
	return []algorithms.Check{
		{Policy: b.strikes, Key: key, Limit: b.Ban.strikes(), Op: algorithms.Reset},
		{Policy: b.bans, Key: key, Limit: b.repeats, Op: algorithms.Reset},
		{Policy: b.ban, Key: key, Limit: b.debt.limit, Op: algorithms.Reset},
	}
}

// bannedBy reports whether check i is denied by the ban that was asked before
// it.
func (d *decision) bannedBy(i int) bool {
	if i == 0 || !d.asked[i-1].ban {
		return false
	}
	ban := &d.checks[i-1].Decision
	return !ban.Allowed && ban.Source != algorithms.Undecided
}

// countDenials counts denials towards bans.
func (m *Middleware) countDenials(d *decision) {
	for i := range d.checks {
		c, p := &d.checks[i], d.asked[i].policy
		if p.banner == nil || c.Op != algorithms.Take || d.asked[i].ban || d.bannedBy(i) ||
			c.Decision.Allowed || c.Decision.Source == algorithms.Undecided {
			continue
		}
		key := strings.Clone(c.Key) // its bytes are the decision's
		m.later(settlement{denial: true, do: func(ctx context.Context) error { return m.strike(ctx, p, key) }})
	}
}

// strike counts one denial of a key, and bans it if it is one too many. Of the
// denials that come at once just one is the last that fits.
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
	if err == nil && m.observer != nil {
		m.observer.Observe(ctx, Event{Kind: Banned, Policy: p.Name, Elapsed: length})
	}
	return err
}

func (m *Middleware) takeOne(ctx context.Context, policy, key string, l algorithms.Limit) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: policy, Key: key, Limit: l, Cost: 1, Fail: algorithms.FailOpen, Exact: true}}
	err := m.limiter.Allow(ctx, checks)
	return checks[0].Decision, err
}
