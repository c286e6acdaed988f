package ratelimit

import (
	"context"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

// abandon refuses a held request, because its client has hung up or the service
// calls Release, and returns all takes of its call.
func (q *request) abandon(why error) {
	m, ctx := q.m, q.http.Context()
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
