package middleware

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// hold waits until an admitted request's turn. If its client hangs up, or the
// middleware is closed before, the request is refused and gives back.
func (m *Middleware) hold(d *decision, r *http.Request) {
	if !m.enter() {
		d.refuse(http.StatusServiceUnavailable, ErrClosed)
		m.giveBack(d, r.Context())
		return
	}
	defer m.held.Done()
	turn := time.NewTimer(d.verdict.Delay)
	defer turn.Stop()
	select {
	case <-turn.C:
		return
	case <-r.Context().Done():
		d.refuse(http.StatusServiceUnavailable, r.Context().Err())
	case <-m.release:
		d.refuse(http.StatusServiceUnavailable, ErrClosed)
	}
	m.giveBack(d, r.Context())
}

// enter reports whether a request may be held, and lets Close wait for it.
func (m *Middleware) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing.Load() {
		return false
	}
	m.held.Add(1)
	return true
}

// giveBack returns all takes of the call.
func (m *Middleware) giveBack(d *decision, ctx context.Context) {
	back := slices.Clone(d.checks)
	for i := range back {
		back[i].Op = algorithms.Return
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := m.limiter.Allow(detached, back); err != nil {
		m.troubles.log("what an abandoned request took could not be given back", err)
	}
	if m.observer != nil {
		m.observer.Observe(ctx, Event{Kind: Abandoned, Verdict: d.verdict})
	}
}

// Close refuses what is held and what comes from now on with 503, and waits
// until what was held has given back what it took, and until what settles late
// has been settled, or until ctx ends, whose error it returns. Call it before
// http.Server.Shutdown, which would wait for held requests; if there are
// policies with Late, ChargeIf, Ban or a concurrent limit once
// more after that, since requests that were being served settle when they end;
// and close the limiter last.
func (m *Middleware) Close(ctx context.Context) error {
	m.mu.Lock()
	if !m.closing.Swap(true) {
		close(m.release)
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.held.Wait()
		close(done)
	}()
	select {
	case <-done:
		return m.settler.wait(ctx)
	case <-ctx.Done():
	}
	select {
	case <-done: // nothing was held, or just in time
		return m.settler.wait(ctx)
	default:
		return ctx.Err()
	}
}
