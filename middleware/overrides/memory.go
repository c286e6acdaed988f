// Overrides of one process.

package overrides

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/lent"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A Memory holds the overrides of this process. The zero Memory panics. It is
// safe for concurrent use.
type Memory struct {
	known
	mu sync.Mutex // orders edits
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	m := new(Memory)
	m.table.Store(new(table))
	return m
}

func init() { lent.To[*Memory]() }

// Set replaces the override of a key. Requests see it when Set returns. Errors
// wrap [ErrInvalid] or [ErrFull].
func (m *Memory) Set(_ context.Context, policy, key string, o ratelimit.Override) error {
	if err := validate(policy, key, &o); err != nil {
		return err
	}
	o.Since = time.Now().UTC().Truncate(time.Second)
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.table.Load()
	e := t.policies[policy]
	if e == nil && len(t.policies) >= MaxPolicies {
		if t = t.swept(); len(t.policies) >= MaxPolicies {
			return errPolicies
		}
	}
	if e != nil && e.get(key) == nil && e.n >= MaxPerPolicy {
		if e = e.swept(); e.n >= MaxPerPolicy {
			return errPerPolicy(policy)
		}
	}
	m.table.Store(t.with(policy, e.with(key, &o)))
	return nil
}

// Clear removes the override of a key. Errors wrap [ErrInvalid].
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

// List returns the overrides of a policy that have not ended, by key. Errors
// wrap [ErrInvalid].
func (m *Memory) List(_ context.Context, policy string) (map[string]ratelimit.Override, error) {
	if err := validatePlace(policy, ratelimit.Everyone); err != nil {
		return nil, err
	}
	all := make(map[string]ratelimit.Override)
	for key, o := range m.table.Load().policies[policy].all {
		if live(o) {
			all[key] = *o
		}
	}
	return all, nil
}

// swept returns a copy of t without the overrides that have ended.
func (t *table) swept() *table {
	next := &table{policies: make(map[string]*entries, len(t.policies))}
	for policy, e := range t.policies {
		if e = e.swept(); e.n > 0 {
			next.policies[policy] = e
		}
	}
	return next
}

// swept returns a copy of e without the overrides that have ended.
func (e *entries) swept() *entries {
	next := &entries{version: e.version}
	for key, o := range e.all {
		if live(o) {
			next.put(key, o)
		}
	}
	return next
}
