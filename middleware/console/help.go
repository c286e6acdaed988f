// How operators help a client: they lift bans, and give units back.

package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/ban"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A Lifted is a ban that Unban has lifted.
type Lifted struct {
	Policy string `json:"policy"`
	Key    string `json:"key"`

	// Override is the operator's ban; nil means that Policy.Ban banned the key.
	Override *ratelimit.Override `json:"override,omitempty"`
}

// Unban lifts bans of a subject, an operator's or Policy.Ban's, forgets the denials of its keys, and returns the bans. It
// keeps any other override. If there was no ban, the error wraps [ErrNotFound]. If another ban still holds, say one of
// all policies, the error wraps [ErrBanned].
func (c *Console) Unban(ctx context.Context, s Subject) (lifted []Lifted, err error) {
	key, err := c.place(s)
	if err != nil {
		return nil, err
	}
	s = Subject{Policy: s.Policy, Key: key}
	for w := range c.policies() {
		if w.policy.Ban == nil || s.Policy != overrides.All && s.Policy != w.policy.Name {
			continue
		}
		keys, err := c.lift(ctx, w, key)
		if err != nil {
			return lifted, err
		}
		lifted = append(lifted, keys...)
	}
	if edit, err := c.editor(s.Policy); err == nil {
		stored, err := edit.List(ctx, s.Policy) // this instance may not have seen the latest edit yet
		if err != nil {
			return lifted, err
		}
		if o := stored[key]; o.Mode == ratelimit.ModeBanned {
			if err := edit.Clear(ctx, s.Policy, key); err != nil {
				return lifted, err
			}
			lifted = append(lifted, Lifted{s.Policy, key, &o})
		}
	} else if w := c.find(s.Policy); w == nil || w.policy.Ban == nil {
		return lifted, err // neither an operator nor the policy can have banned the key
	}
	if err := c.stillBanned(ctx, s); err != nil {
		return lifted, err
	}
	if lifted == nil {
		return nil, fmt.Errorf("ratelimit: ban of this client in policy %q: %w", s.Policy, ErrNotFound)
	}
	return lifted, nil
}

// lift ends the bans by Policy.Ban of a key, or of all keys that begin with it, and forgets their denials. It returns
// the bans that it ended.
func (c *Console) lift(ctx context.Context, w *watched, key string) (lifted []Lifted, err error) {
	keys := w.keysOf([]Subject{{Key: key}})
	if w.check(key, false) == nil {
		keys = union(keys, key)
	}
	for _, key := range keys {
		t := w.target(key)
		left, err := t.bannedByPolicy(ctx)
		if err == nil {
			err = t.ask(ctx, ban.New(w.policy.Name, ban.Rule(*w.policy.Ban)).Lifts(key))
		}
		if err != nil {
			return lifted, err
		}
		if left > 0 {
			lifted = append(lifted, Lifted{Policy: w.policy.Name, Key: key})
		}
	}
	return lifted, nil
}

// bannedByPolicy returns how long Policy.Ban, which is not nil, still bans the key; 0 if it does not.
func (t *target) bannedByPolicy(ctx context.Context) (time.Duration, error) {
	asks := []algorithms.Check{{Exact: true}}
	ban.New(t.policy.Name, ban.Rule(*t.policy.Ban)).Check(&asks[0], t.key)
	if err := t.ask(ctx, asks); err != nil {
		return 0, err
	}
	if d := &asks[0].Decision; !d.Allowed && d.Source != algorithms.Undecided {
		return d.RetryAfter, nil
	}
	return 0, nil
}

// stillBanned returns an ErrBanned if a ban denies the subject, whose Key is a text of its policy or of all policies, or a
// longer key that begins with it.
func (c *Console) stillBanned(ctx context.Context, s Subject) error {
	for w := range c.policies() {
		if w.policy.Shadow || s.Policy != overrides.All && s.Policy != w.policy.Name {
			continue
		}
		if table, ok := w.m.Overrides().(interface{ Refresh(context.Context) error }); ok {
			if err := table.Refresh(ctx); err != nil {
				return fmt.Errorf("ratelimit: %w", err)
			}
		}
		t, err := c.target(Subject{Policy: w.policy.Name, Key: s.Key}, true)
		if err != nil {
			continue // the policy never makes this key
		}
		if t.mode == ratelimit.ModeBanned {
			at := append(t.setFor(ctx), "")
			return banned(at[0], t.override)
		}
		edit, err := c.editor(w.policy.Name)
		if err != nil {
			continue
		}
		stored, err := edit.List(ctx, w.policy.Name)
		if err != nil {
			return err
		}
		for key, o := range stored {
			if o.Mode == ratelimit.ModeBanned && strings.HasPrefix(key, s.Key+"|") {
				return banned(w.policy.Name, &o)
			}
		}
	}
	return nil
}

// banned returns the error of a ban that still holds.
func banned(policy string, o *ratelimit.Override) error {
	text := fmt.Sprintf("in policy %q", policy)
	if policy == overrides.All {
		text = fmt.Sprintf("in all policies (%s)", policy)
	}
	if !o.Since.IsZero() {
		text += " since " + o.Since.Format(time.RFC3339)
	}
	if o.By != "" {
		text += " by " + o.By
	}
	return fmt.Errorf("ratelimit: the client is still %w %s: lift that ban, too", ErrBanned, text)
}

// everyAlgorithm has a limit of each algorithm that has a state. Of a limit, only
// the algorithm decides where a key's state is.
var everyAlgorithm = []algorithms.Limit{
	algorithms.TokenBucket(1, time.Second), algorithms.LeakyBucket(1, time.Second),
	algorithms.SlidingWindowCounter(1, time.Second), algorithms.SlidingWindowLog(1, time.Second),
	algorithms.FixedWindow(1, time.Second), algorithms.PerDay(1, nil), algorithms.Concurrent(1, time.Second),
}

// Reset forgets the units that a key has used of a policy and its candidate, under every limit. It returns how many units
// of the limit came back: of several limits that Who lists, the most. It keeps overrides and bans. If a ban still denies
// the key, the error wraps [ErrBanned], and the units are back nevertheless.
func (c *Console) Reset(ctx context.Context, s Subject) (units int64, err error) {
	return c.giveBack(ctx, s, algorithms.Check{Op: algorithms.Reset})
}

// Grant gives a key units back: at least one, at most the used units. It cuts nothing, so it needs neither the client's
// tier nor its limit. The results are Reset's.
func (c *Console) Grant(ctx context.Context, s Subject, units int64) (given int64, err error) {
	if units < 1 {
		return 0, fmt.Errorf("ratelimit: %w: a grant of %d units: want at least 1", algorithms.ErrInvalid, units)
	}
	given, err = c.giveBack(ctx, s, algorithms.Check{Op: algorithms.Grant, Cost: units})
	return min(given, units), err
}

// giveBack settles a key under a limit of each algorithm, a Reset also for the policy's candidate, and returns how many
// units came back. Requests that come meanwhile can hide some.
func (c *Console) giveBack(ctx context.Context, s Subject, settlement algorithms.Check) (units int64, err error) {
	t, err := c.one(s)
	if err != nil {
		return 0, err
	}
	names := []string{t.policy.Name}
	if settlement.Op == algorithms.Reset && t.policy.Candidate != nil {
		names = append(names, t.policy.Name+"~candidate")
	}
	var checks []algorithms.Check
	for _, name := range names {
		for _, l := range everyAlgorithm {
			settlement.Policy, settlement.Key, settlement.Limit = name, t.key, l
			checks = append(checks, settlement)
		}
	}
	limits := t.limits(c.lastDenial(t))
	after := slices.Clone(limits)
	if err := t.look(ctx, limits); err != nil {
		return 0, err
	}
	if err := t.ask(ctx, checks); err != nil {
		return 0, err
	}
	if err := t.look(ctx, after); err != nil {
		return 0, err
	}
	for i, before := range limits {
		units = max(units, after[i].Remaining-before.Remaining)
	}
	return units, c.stillBanned(ctx, Subject{Policy: s.Policy, Key: t.key})
}
