package ratelimit

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

// hold waits until an admitted request's turn. If its client hangs up first, or
// the service calls Release, hold refuses the request and returns all its
// takes.
func (m *Middleware) hold(q *request) {
	ctx := q.http.Context()
	if !m.enter() {
		m.abandon(q, ErrClosed)
		return
	}
	defer m.held.Done()
	turn := time.NewTimer(q.verdict.Delay)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
		m.abandon(q, ctx.Err())
	case <-m.released:
		m.abandon(q, ErrClosed)
	}
}

// enter reports whether a request may be held, and makes Close wait for it.
func (m *Middleware) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.released:
		return false
	default:
		m.held.Add(1)
		return true
	}
}

// abandon refuses a held request, and returns all takes of its call.
func (m *Middleware) abandon(q *request, why error) {
	ctx := q.http.Context()
	q.refusal = refusal{err: why, status: http.StatusServiceUnavailable}
	q.verdict.refuse(q.refusal)
	back := slices.Clone(q.checks)
	for i := range back {
		back[i].Op = algorithms.Return
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle.Timeout)
	defer cancel()
	if err := m.limiter.Allow(detached, back); err != nil {
		m.log.Warn("failed return of an abandoned request", "", err)
	}
	m.observe(ctx, &Event{Kind: Abandoned, Verdict: q.verdict.clone()})
}
