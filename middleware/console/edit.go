// Bans, and the other overrides that operators set.

package console

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/ban"
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
	m, _ := c.policy(policy)
	if policy == overrides.All && len(c.all) > 0 {
		m = c.all[0]
	}
	if m == nil {
		return nil, fmt.Errorf("ratelimit: policy %q: %w", policy, ErrNotFound)
	}
	edit, ok := m.Overrides().(editor)
	if !ok {
		return nil, fmt.Errorf("ratelimit: the overrides of policy %q are %w: set Options.Overrides to a table of package overrides", policy, ErrUneditable)
	}
	return edit, nil
}

// Ban denies a key until an instant; the zero Time means until Unban. The ban
// replaces another override of the key.
func (c *Console) Ban(ctx context.Context, s Subject, until time.Time) error {
	return c.set(ctx, s, ratelimit.Override{Mode: ratelimit.ModeBanned, Until: until})
}

// Unban lifts bans of a key, an operator's or Policy.Ban's, and forgets the
// key's denials. It keeps any other override. If nothing is banned and the
// policy has no Ban, the error is [ErrNotFound].
func (c *Console) Unban(ctx context.Context, s Subject) error {
	t, err := c.target(s)
	if err != nil {
		return err
	}
	banned := t.policy.Ban
	if banned != nil {
		if err := t.ask(ctx, ban.New(t.Policy, ban.Rule(*banned)).Lifts(t.Key)); err != nil {
			return err
		}
	}
	edit, err := c.editor(s.Policy)
	if err != nil && banned != nil {
		return nil // no operator can have banned the key
	}
	if err != nil {
		return err
	}
	// This instance may not have seen the latest edit yet, so read the stored
	// one.
	stored, err := edit.List(ctx, s.Policy)
	if err != nil {
		return err
	}
	switch o, found := stored[t.Key]; {
	case found && o.Mode == ratelimit.ModeBanned:
		return edit.Clear(ctx, s.Policy, t.Key)
	case found && banned == nil:
		return fmt.Errorf("ratelimit: ban of a key of policy %q: %w", s.Policy, ErrNotFound)
	default:
		return nil
	}
}

// set replaces the override of a key, of everyone, or of all policies.
func (c *Console) set(ctx context.Context, s Subject, o ratelimit.Override) error {
	edit, err := c.editor(s.Policy)
	if err != nil {
		return err
	}
	if s.Policy == overrides.All {
		return edit.Set(ctx, s.Policy, s.Key, o)
	}
	t, err := c.target(s)
	if err != nil {
		return err
	}
	if t.policy.Shadow && o.Mode == ratelimit.ModeBanned {
		return fmt.Errorf("ratelimit: the bans of policy %q are %w: a shadow policy denies nothing", s.Policy, ErrUneditable)
	}
	if o.Limit != (algorithms.Limit{}) {
		if err := t.replaceable(o.Limit); err != nil {
			return fmt.Errorf("ratelimit: %w: %w", overrides.ErrInvalid, err)
		}
	}
	return edit.Set(ctx, s.Policy, t.Key, o)
}
