// Bans, and the other overrides that operators set.

package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// An editor is a ratelimit.Overrides that can be changed.
type editor interface {
	Set(ctx context.Context, policy, key string, o ratelimit.Override) error
	Clear(ctx context.Context, policy, key string) error
	List(ctx context.Context, policy string) (map[string]ratelimit.Override, error)
}

// editor returns the editor of a policy's overrides.
func (c *Console) editor(policy string) (editor, error) {
	var m *ratelimit.Middleware
	if w := c.find(policy); w != nil {
		m = w.m
	} else if policy == overrides.All && len(c.all) > 0 {
		m = c.all[0]
	} else {
		return nil, fmt.Errorf("ratelimit: policy %q: %w", policy, ErrNotFound)
	}
	edit, ok := m.Overrides().(editor)
	if !ok {
		return nil, fmt.Errorf("ratelimit: the overrides of policy %q are %w: set Options.Overrides to a table of package overrides", policy, ErrUneditable)
	}
	return edit, nil
}

// place returns the key of an override for a subject: a whole key, the first part of
// keys, or Everyone. Of all policies, at least one makes it.
func (c *Console) place(s Subject) (string, error) {
	if s.Policy != overrides.All {
		t, err := c.target(s, true)
		if err != nil {
			return "", err
		}
		return t.key, nil
	}
	if s.Key == ratelimit.Everyone {
		return s.Key, nil
	}
	var refused []error
	key := ""
	for w := range c.policies() {
		own := s
		own.Policy = w.policy.Name
		switch t, err := c.target(own, true); {
		case err != nil:
			refused = append(refused, err)
		case key != "" && t.key != key:
			return "", fmt.Errorf("ratelimit: %w: policies cut this address to different prefixes, %s and %s: name one by key", algorithms.ErrInvalid, key, t.key)
		default:
			key = t.key
		}
	}
	if key == "" {
		return "", errors.Join(refused...)
	}
	return key, nil
}

// Ban denies a client until an instant, with 429; the zero Time means until Unban, with 403. If the
// subject names a first part of keys, such as usr=42, the ban holds for all keys
// that begin with it. The policy overrides.All bans in all policies, except where
// everyone has an override. The ban replaces another override of the subject. by says who
// bans, and is stored beside the ban; it may be empty.
func (c *Console) Ban(ctx context.Context, s Subject, until time.Time, by string) error {
	return c.set(ctx, s, ratelimit.Override{Mode: ratelimit.ModeBanned, Until: until, By: by})
}

func (c *Console) set(ctx context.Context, s Subject, o ratelimit.Override) error {
	edit, err := c.editor(s.Policy)
	if err != nil {
		return err
	}
	key, err := c.place(s)
	if err != nil {
		return err
	}
	w := c.find(s.Policy) // nil: all policies
	if w != nil && w.policy.Shadow && o.Mode == ratelimit.ModeBanned {
		return fmt.Errorf("ratelimit: the bans of policy %q are %w: a shadow policy denies nothing", s.Policy, ErrUneditable)
	}
	if w != nil && o.Limit != (algorithms.Limit{}) {
		if err := w.m.Inside().Replaceable(s.Policy, o.Limit); err != nil {
			return fmt.Errorf("ratelimit: %w of policy %q: %s", overrides.ErrInvalid, s.Policy, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return edit.Set(ctx, s.Policy, key, o)
}

// Overrides returns the overrides and bans of all policies that operators set at an
// instant or later, by policy and key; the zero Time selects all. Bans returns those
// by Policy.Ban.
func (c *Console) Overrides(ctx context.Context, since time.Time) (map[string]map[string]ratelimit.Override, error) {
	all := make(map[string]map[string]ratelimit.Override)
	names := []string{overrides.All}
	for w := range c.policies() {
		names = append(names, w.policy.Name)
	}
	for _, policy := range names {
		edit, err := c.editor(policy)
		if err != nil {
			continue // read-only
		}
		stored, err := edit.List(ctx, policy)
		if err != nil {
			return nil, err
		}
		recent := maps.Clone(stored)
		maps.DeleteFunc(recent, func(_ string, o ratelimit.Override) bool { return o.Since.Before(since) })
		if len(recent) > 0 {
			all[policy] = recent
		}
	}
	return all, nil
}

// Bans returns the keys that Policy.Ban bans now, of the 128 of each policy that this
// process denied most often lately. ClearsAfter is when a ban ends, and nothing stores
// when it began: not before First. While Redis is away, no key is banned.
func (c *Console) Bans(ctx context.Context) (all []Standing, err error) {
	for w := range c.policies() {
		known := make(map[string]bool)
		for _, o := range w.offenders {
			t := w.target(o.Plain)
			if w.policy.Ban == nil || known[o.Plain] || t.mode != "" {
				continue
			}
			known[o.Plain] = true
			s, err := c.standing(ctx, t)
			if err != nil {
				return nil, err
			}
			if s.Reason == ByBan {
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// ClearOverrides removes the overrides that Overrides returns, and returns them. It
// undoes no grant and no reset.
func (c *Console) ClearOverrides(ctx context.Context, since time.Time) (map[string]map[string]ratelimit.Override, error) {
	all, err := c.Overrides(ctx, since)
	if err != nil {
		return nil, err
	}
	var errs []error
	for policy, keys := range all {
		edit, err := c.editor(policy)
		errs = append(errs, err)
		for key := range keys {
			if err == nil {
				errs = append(errs, edit.Clear(ctx, policy, key))
			}
		}
	}
	return all, errors.Join(errs...)
}
