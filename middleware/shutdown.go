package ratelimit

import (
	"context"

	"github.com/penstock-go/penstock/middleware/internal/delayed"
)

// ErrClosed is the error of requests and Updates after Close, and of held
// requests after Release.
var ErrClosed = delayed.ErrClosed

// Release refuses with 503 all requests that are or would be held, and returns
// their takes. It does not wait. Register it, because net/http's Shutdown waits
// for held requests:
//
//	server.RegisterOnShutdown(m.Release)
func (m *Middleware) Release() {
	m.delayed.Release()
}

// Close refuses all requests with 503 from now on, and waits until late settlements are made, or until ctx ends, whose
// error it returns. It also waits up to two seconds for the handler of the log. Call it after http.Server.Shutdown and
// before the limiter's Close. Further calls are harmless.
func (m *Middleware) Close(ctx context.Context) error {
	m.Release()
	m.mu.Lock()
	if !m.closed.Swap(true) {
		m.pending = append(m.pending, Unregistered)
	}
	m.mu.Unlock()
	m.announce(ctx)
	defer m.log.Close()
	if err := m.delayed.Wait(ctx); err != nil {
		return err
	}
	return m.settler.Wait(ctx)
}
