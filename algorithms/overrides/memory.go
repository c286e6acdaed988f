// Overrides of this process alone.

package overrides

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// A Memory holds the overrides of this process. It is safe for concurrent use,
// and has no goroutine. Those of all instances are a [Redis]'s.
type Memory struct {
	table atomic.Pointer[table]
	mu    sync.Mutex // orders edits
}

// NewMemory returns a Memory without overrides.
func NewMemory() *Memory {
	m := new(Memory)
	m.table.Store(new(table))
	return m
}

// Find returns the override in force for a key, and whether there is one; for
// the key [Everyone], what holds for all. It waits for nothing, and allocates
// nothing.
func (m *Memory) Find(policy, key string) (Override, bool) {
	if o := m.table.Load().find(policy, key); o != nil {
		return *o, true
	}
	return Override{}, false
}

// Set sets the override of a key, in place of the one it has. Requests see it
// when Set returns. Errors wrap [ErrInvalid] or [ErrFull].
func (m *Memory) Set(_ context.Context, policy, key string, o Override) error {
	if err := o.Validate(policy, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.table.Load()
	e := t.policies[policy]
	if e == nil && len(t.policies) >= MaxPolicies {
		return fmt.Errorf("overrides: %w: at most %d policies have some", ErrFull, MaxPolicies)
	}
	if e != nil && e.get(key) == nil && e.n >= MaxPerPolicy {
		if e = e.swept(); e.n >= MaxPerPolicy {
			return fmt.Errorf("overrides: %w: policy %q has %d", ErrFull, policy, e.n)
		}
	}
	m.table.Store(t.with(policy, e.with(key, &o)))
	return nil
}

// Clear removes the override of a key, if it has one.
func (m *Memory) Clear(_ context.Context, policy, key string) error {
	if err := validatePlace(policy, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.table.Load()
	if e := t.policies[policy]; e.get(key) != nil {
		m.table.Store(t.with(policy, e.with(key, nil)))
	}
	return nil
}

// List returns the overrides of a policy that have not ended, by key.
func (m *Memory) List(_ context.Context, policy string) (map[string]Override, error) {
	if err := validatePlace(policy, Everyone); err != nil {
		return nil, err
	}
	return m.table.Load().policies[policy].live(), nil
}

// Count returns how many overrides of a policy have not ended, that of everyone
// included. It waits for nothing.
func (m *Memory) Count(policy string) int { return m.table.Load().policies[policy].count() }

// swept returns the entries without those that have ended.
func (e *entries) swept() *entries {
	next := &entries{version: e.version}
	for key, o := range e.all {
		if o.Live() {
			next.put(key, o)
		}
	}
	return next
}
