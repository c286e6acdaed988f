// Update, and the events by which observers learn of it.

package ratelimit

import "context"

// Update replaces the policies of this instance. Requests in flight end under the old ones. Counts stay where a policy
// keeps its name and algorithm. On an error (a misconfiguration, or ErrClosed) the old policies stay.
func (m *Middleware) Update(policies ...Policy) error {
	c, err := m.newConfig(policies)
	if err != nil {
		return err
	}
	if err := m.replace(c); err != nil {
		return err
	}
	m.announce(context.Background())
	return nil
}

func (m *Middleware) replace(c *config) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return ErrClosed
	}
	before := m.config.Load()
	for _, p := range c.policies {
		if old := before.policy(p.Name); old != nil {
			p.replace(old)
		}
	}
	m.config.Store(c)
	m.pending = append(m.pending, Registered)
	return nil
}

// announce reports the pending events in order. It holds no lock while it reports,
// because an observer may call the Middleware. If a goroutine reports already,
// perhaps the caller's own, that goroutine reports the rest.
func (m *Middleware) announce(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reporting {
		return
	}
	m.reporting = true
	defer func() { m.reporting = false }()
	for len(m.pending) > 0 {
		kind := m.pending[0]
		m.pending = m.pending[1:]
		func() {
			m.mu.Unlock()
			defer m.mu.Lock() // also if an observer ends the goroutine
			m.observe(ctx, &Event{Kind: kind})
		}()
	}
}
