package ratelimit

import (
	"context"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

// hold waits until an admitted request's turn. If its client hangs up first, or
// the service calls Release, hold refuses the request and returns all its
// takes.
func (m *Middleware) hold(q *request) {
	m.delayed.Hold(q.http.Context(), q.verdict.Delay, func(why error) { m.abandon(q, why) })
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
