package middleware

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

// A Console lets operators look at keys of one [Middleware] or several, and help
// or stop those they are of. It asks the shared limiter for exactly the key it is given,
// and never searches: what key a client has is in the verdicts.
//
// What it changes is in force here at once, and on other instances within a
// second. It is safe for concurrent use.
//
// Not for what a program decides again and again, which is a tier, an override or
// a [Ban]; nor for giving to one client, week after week, what its limit should.
type Console struct{ all []*Middleware }

// NewConsole returns the console of middlewares; of policies that bear the same
// name, it knows the first. Bans need Options.Overrides that can be edited, as
// those of package overrides can; what is of all policies is edited in those of
// the first middleware.
func NewConsole(all ...*Middleware) *Console { return &Console{all: slices.Clone(all)} }

// A Subject is what a Console acts on.
type Subject struct {
	Policy string
	Key    string // as the policy's Key makes it, e.g. "ip=192.0.2.1"
	Tier   string // of the key's requests, "" for none; Explain and Grant read it
}

var (
	// ErrNotFound is wrapped by errors of a [Console] that say that there is no
	// such policy, tier or ban.
	ErrNotFound = errors.New("not found")

	// ErrUneditable is wrapped by errors of a [Console] that say that nothing can
	// be overridden: Options.Overrides is nil, or only lets itself be read, or
	// the policy is a shadow, which cannot deny.
	ErrUneditable = errors.New("is not possible")
)

// editor is what Overrides are that can be changed.
type editor interface {
	Set(ctx context.Context, policy, key string, o overrides.Override) error
	Clear(ctx context.Context, policy, key string) error
	List(ctx context.Context, policy string) (map[string]overrides.Override, error)
}

// A target is a subject and what holds for it.
type target struct {
	Subject
	m        *Middleware
	policy   *policy
	beside   mix                 // of the limits of all policies of m
	override *overrides.Override // in force; nil if none
}

func (c *Console) target(s Subject) (*target, error) {
	t := &target{Subject: s}
	for _, m := range c.all {
		config := m.config.Load()
		if p := config.policy(s.Policy); p != nil && t.policy == nil {
			t.m, t.policy, t.beside = m, p, config.mix
		}
	}
	switch {
	case t.policy == nil:
		return nil, fmt.Errorf("middleware: policy %q: %w", s.Policy, ErrNotFound)
	case s.Tier != "" && t.policy.tiers[s.Tier] == nil:
		return nil, fmt.Errorf("middleware: tier %q of policy %q: %w", s.Tier, s.Policy, ErrNotFound)
	case t.m.overrides == nil:
		return t, nil
	}
	if o, found := t.m.overrides.Find(s.Policy, s.Key); found {
		t.override = &o
	}
	return t, nil
}

// policies returns all policies that a subject may have.
func (c *Console) policies() []*policy {
	var all []*policy
	for _, m := range c.all {
		for _, p := range m.config.Load().policies {
			if !slices.ContainsFunc(all, func(other *policy) bool { return other.Name == p.Name }) {
				all = append(all, p)
			}
		}
	}
	return all
}

// one returns the target if it is one key, for what is not done to everyone.
func (c *Console) one(s Subject) (*target, error) {
	if s.Key == overrides.Everyone || s.Key == "" {
		return nil, fmt.Errorf("middleware: %w: the key %q is nobody's", algorithms.ErrInvalid, s.Key)
	}
	return c.target(s)
}

// inForce returns the limit that decides, and why it does.
func (t *target) inForce() (algorithms.Limit, Reason) {
	if t.override != nil && t.override.Replaces() && t.replaceable(t.override.Limit) == nil {
		return t.override.Limit, ByOverride
	}
	if t.Tier != "" {
		return t.policy.tiers[t.Tier].limit, ByTier
	}
	return t.policy.Limit, ByDefault
}

// replaceable returns why a limit cannot be that of an override: with it New
// would refuse the policies.
func (t *target) replaceable(l algorithms.Limit) error {
	all := t.beside
	all.add(l)
	return errors.Join(t.policy.replaceable(l), all.validate())
}

// limits returns all limits under which the key may have a state.
func (t *target) limits() []LimitState {
	p := t.policy
	all := []LimitState{{Reason: ByDefault, Limit: p.Limit, policy: p.Name}}
	for _, tier := range slices.Sorted(maps.Keys(p.tiers)) {
		all = append(all, LimitState{Reason: ByTier, Tier: tier, Limit: p.tiers[tier].limit, policy: p.Name})
	}
	limit, reason := t.inForce()
	if reason == ByOverride {
		all = append(all, LimitState{Reason: reason, Limit: limit, policy: p.Name})
	}
	if p.candidate != nil {
		all = append(all, LimitState{Reason: ByCandidate, Limit: p.candidate.limit, policy: p.trial})
	}
	for i := range all {
		l := &all[i]
		l.InForce = l.Reason == reason && (reason != ByTier || l.Tier == t.Tier)
	}
	return all
}

// everyAlgorithm has a limit of each that stores anything. Where a key's state
// is stored depends on no more of a limit than that.
var everyAlgorithm = []algorithms.Limit{
	algorithms.TokenBucket(1, time.Second), algorithms.LeakyBucket(1, time.Second),
	algorithms.SlidingWindowCounter(1, time.Second), algorithms.SlidingWindowLog(1, time.Second),
	algorithms.FixedWindow(1, time.Second), algorithms.PerDay(1, nil), algorithms.Concurrent(1, time.Second),
}

// Reset forgets what a key has used of a policy and of its candidate: under the
// limit in force, under every other, and under those that overrides or an Update
// have replaced since.
func (c *Console) Reset(ctx context.Context, s Subject) error {
	t, err := c.one(s)
	if err != nil {
		return err
	}
	names := []string{s.Policy}
	if t.policy.candidate != nil {
		names = append(names, t.policy.trial)
	}
	var checks []algorithms.Check
	for _, name := range names {
		for _, l := range everyAlgorithm {
			checks = append(checks, algorithms.Check{Policy: name, Key: s.Key, Limit: l, Op: algorithms.Reset})
		}
	}
	return t.settle(ctx, checks...)
}

// Grant gives a key units back, at most all that it has used of the limit in
// force. Of the other limits it gives nothing: those that are stored at the same
// place have it, too.
func (c *Console) Grant(ctx context.Context, s Subject, units int64) error {
	t, err := c.one(s)
	if err != nil {
		return err
	}
	if units < 1 {
		return fmt.Errorf("middleware: %w: a grant of %d units", algorithms.ErrInvalid, units)
	}
	limit, _ := t.inForce()
	return t.settle(ctx, algorithms.Check{
		Policy: s.Policy, Key: s.Key, Limit: limit, Cost: units, Op: algorithms.Grant,
	})
}

func (t *target) settle(ctx context.Context, checks ...algorithms.Check) error {
	if err := t.m.limiter.Allow(ctx, checks); err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	return nil
}

// Ban denies a key until an instant, or until Unban if that is zero, in place of
// another override that it may have.
func (c *Console) Ban(ctx context.Context, s Subject, until time.Time) error {
	return c.set(ctx, s, overrides.Override{Mode: overrides.Banned, Until: until})
}

// Unban ends the ban of a key, whether it was banned here or for its denials,
// which are forgotten. Another override that it has stays, and is an error if
// the policy bans nobody by itself.
func (c *Console) Unban(ctx context.Context, s Subject) error {
	t, err := c.target(s)
	if err != nil {
		return err
	}
	bans := t.policy.banner != nil
	if bans {
		if err := t.settle(ctx, t.policy.banner.forgiven(s.Key)...); err != nil {
			return err
		}
	}
	edit, err := c.editor(s)
	if err != nil {
		if bans {
			return nil // then nobody was banned here
		}
		return err
	}
	// What is stored counts: this instance may not have seen it yet.
	stored, err := edit.List(ctx, s.Policy)
	if err != nil {
		return err
	}
	if o, found := stored[s.Key]; found && o.Mode == overrides.Banned {
		return edit.Clear(ctx, s.Policy, s.Key)
	} else if found && !bans {
		return fmt.Errorf("middleware: ban of a key of policy %q: %w", s.Policy, ErrNotFound)
	}
	return nil
}

func (c *Console) set(ctx context.Context, s Subject, o overrides.Override) error {
	edit, err := c.editor(s)
	if err != nil {
		return err
	}
	if t, err := c.target(s); err == nil && t.policy.Shadow && o.Mode == overrides.Banned {
		return fmt.Errorf("middleware: policy %q is a shadow, and so a ban %w", s.Policy, ErrUneditable)
	}
	if t, err := c.target(s); err == nil && o.Replaces() {
		if err := t.replaceable(o.Limit); err != nil {
			return fmt.Errorf("middleware: %w of policy %q: %w", overrides.ErrInvalid, s.Policy, err)
		}
	}
	return edit.Set(ctx, s.Policy, s.Key, o)
}

func (c *Console) clear(ctx context.Context, s Subject) error {
	edit, err := c.editor(s)
	if err != nil {
		return err
	}
	return edit.Clear(ctx, s.Policy, s.Key)
}

// editor returns what edits the overrides of a subject's policy.
func (c *Console) editor(s Subject) (editor, error) {
	t, err := c.target(s)
	if s.Policy == overrides.All && len(c.all) > 0 {
		t, err = &target{m: c.all[0]}, nil
	}
	if err != nil {
		return nil, err
	}
	edit, ok := t.m.overrides.(editor)
	if !ok {
		return nil, fmt.Errorf("middleware: an override of policy %q %w: Options.Overrides cannot be edited", s.Policy, ErrUneditable)
	}
	return edit, nil
}
