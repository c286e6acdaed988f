// Package console lets operators look at the limits of one client, and help or
// stop that client: from Go, or with [Console.Handler] as JSON over HTTP.
//
// A [Subject] names one key of a policy, such as usr=42 or ip=192.0.2.1. For an
// address, the console calls the policy's Key with a request that has only this
// address.
//
// The console refuses a key that the policy never makes, but cannot know which
// accounts exist. The error does not quote the key, which may be a secret.
// ip=ADDRESS is also a key of policies that read API keys or have a
// keyfunc.Custom.
package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A Console acts on the keys of Middlewares. A change takes effect on this
// instance at once, and on others within a second. A Console is safe for
// concurrent use. The zero Console knows no policy.
//
// Errors wrap [ErrNotFound], [ErrUneditable], or [algorithms.ErrInvalid] for an
// invalid Subject, or are the limiter's or package overrides'.
type Console struct{ all []*ratelimit.Middleware }

// New returns a console of Middlewares; of policies of one name, the first.
// Bans and overrides need an Options.Overrides of package overrides; an
// override of all policies goes to the first Middleware's.
func New(all ...*ratelimit.Middleware) *Console { return &Console{all: slices.Clone(all)} }

// A Subject is one key of a policy. The zero Subject is invalid.
type Subject struct {
	Policy string

	// Exactly one of these fields names the key.
	Key string     // its text, e.g. "ip=192.0.2.1", or as TopDenied shows it on this instance
	ID  string     // the account, as in keyfunc.Identity
	IP  netip.Addr // the client's address

	// Tier is for Explain and Grant; empty means none.
	Tier string
}

var (
	// ErrNotFound: there is no such policy, tier or ban.
	ErrNotFound = errors.New("not found")

	// ErrUneditable: Options.Overrides is nil or read-only, or a shadow policy
	// should ban.
	ErrUneditable = errors.New("not editable")
)

// A target is a subject, its policy, and its override.
type target struct {
	Subject  // Key is set, and neither ID nor IP
	m        *ratelimit.Middleware
	policy   *ratelimit.Policy
	override *ratelimit.Override // in force; nil: none
}

// policy returns the policy of a name and its Middleware, or nil.
func (c *Console) policy(name string) (*ratelimit.Middleware, *ratelimit.Policy) {
	for _, m := range c.all {
		for _, p := range m.Policies() {
			if p.Name == name {
				return m, &p
			}
		}
	}
	return nil, nil
}

// target returns the target of a subject whose key the policy may make.
func (c *Console) target(s Subject) (*target, error) {
	m, p := c.policy(s.Policy)
	if p == nil {
		return nil, fmt.Errorf("ratelimit: policy %q: %w", s.Policy, ErrNotFound)
	}
	if _, found := p.Tiers[s.Tier]; s.Tier != "" && !found {
		return nil, fmt.Errorf("ratelimit: tier %q of policy %q: %w", s.Tier, s.Policy, ErrNotFound)
	}
	s.Key = revealed(m, s)
	key, err := textsOf(p).of(s)
	if err != nil {
		return nil, err
	}
	t := &target{Subject: Subject{Policy: s.Policy, Key: key, Tier: s.Tier}, m: m, policy: p}
	if all := m.Overrides(); all != nil {
		if o, found := all.Find(s.Policy, key); found {
			t.override = &o
		}
	}
	return t, nil
}

// revealed returns the key of a subject, also where the subject has the key as
// TopDenied shows it.
func revealed(m *ratelimit.Middleware, s Subject) string {
	if !strings.Contains(s.Key, "=#") {
		return s.Key
	}
	for _, o := range m.TopDenied(s.Policy, rememberedKeys) {
		if o.Key == s.Key {
			return o.Plain
		}
	}
	return s.Key
}

const rememberedKeys = 128 // TopDenied knows no more

// one returns the target of a subject that is not everyone.
func (c *Console) one(s Subject) (*target, error) {
	if s.Key == ratelimit.Everyone {
		return nil, fmt.Errorf("ratelimit: %w: %q is not a client: name one by key, id or ip", algorithms.ErrInvalid, s.Key)
	}
	return c.target(s)
}

// inForce returns the limit that decides, and the reason.
func (t *target) inForce() (algorithms.Limit, Reason) {
	if o := t.override; o != nil && o.Limit != (algorithms.Limit{}) && t.replaceable(o.Limit) == nil {
		return o.Limit, ByOverride
	}
	if t.Tier != "" {
		return t.policy.Tiers[t.Tier], ByTier
	}
	return t.policy.Limit, ByDefault
}

// replaceable reports why ratelimit.New would refuse the policies with this
// limit in place of the policy's.
func (t *target) replaceable(l algorithms.Limit) error {
	policies := t.m.Policies()
	for i := range policies {
		if policies[i].Name == t.Policy {
			policies[i].Limit = l
		}
	}
	// Requests meet the policy's own limit beside the override's.
	own := ratelimit.Policy{Name: "own-" + rand.Text(), Limit: t.policy.Limit}
	_, err := ratelimit.New(algorithms.NewMemory(nil), nil, append(policies, own)...)
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(strings.ReplaceAll(err.Error(), "ratelimit: ", ""), "\n", "; "))
}

// everyAlgorithm has a limit of each algorithm that has a state. Of a limit, only
// the algorithm decides where a key's state is.
var everyAlgorithm = []algorithms.Limit{
	algorithms.TokenBucket(1, time.Second), algorithms.LeakyBucket(1, time.Second),
	algorithms.SlidingWindowCounter(1, time.Second), algorithms.SlidingWindowLog(1, time.Second),
	algorithms.FixedWindow(1, time.Second), algorithms.PerDay(1, nil), algorithms.Concurrent(1, time.Second),
}

// Reset forgets the units that a key has used of a policy and its candidate,
// under every limit. It keeps overrides and bans.
func (c *Console) Reset(ctx context.Context, s Subject) error {
	t, err := c.one(s)
	if err != nil {
		return err
	}
	names := []string{s.Policy}
	if t.policy.Candidate != nil {
		names = append(names, candidate(s.Policy))
	}
	var checks []algorithms.Check
	for _, name := range names {
		for _, l := range everyAlgorithm {
			checks = append(checks, algorithms.Check{Policy: name, Key: t.Key, Limit: l, Op: algorithms.Reset})
		}
	}
	return t.ask(ctx, checks)
}

// candidate returns the name under which a policy's candidate is stored.
func candidate(policy string) string { return policy + "~candidate" }

// Grant gives a key units back: at least one, at most the used units of the
// limit in force.
func (c *Console) Grant(ctx context.Context, s Subject, units int64) error {
	t, err := c.one(s)
	if err != nil {
		return err
	}
	if units < 1 {
		return fmt.Errorf("ratelimit: %w: a grant of %d units: want at least 1", algorithms.ErrInvalid, units)
	}
	limit, _ := t.inForce()
	return t.ask(ctx, []algorithms.Check{{Policy: s.Policy, Key: t.Key, Limit: limit, Cost: units, Op: algorithms.Grant}})
}

// ask answers checks in place.
func (t *target) ask(ctx context.Context, checks []algorithms.Check) error {
	_, limiter := t.m.Limiter()
	if err := limiter.Allow(ctx, checks); err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return nil
}
