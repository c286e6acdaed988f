package ratelimit

import (
	"context"
	"errors"
)

// ErrClosed is the error of requests that a [Middleware] refuses after Close, and of
// held requests that it refuses after Release. It is also Update's after Close.
var ErrClosed = errors.New("ratelimit: the middleware is closed")

// Release refuses the requests that are held, and from now on those that would be
// held, with 503. It does not wait. All their takes are returned; Close waits for
// that. Other requests are served as before.
//
// net/http's Shutdown waits for held requests, so register Release:
//
//	server.RegisterOnShutdown(m.Release)
func (m *Middleware) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.released:
	default:
		close(m.released)
	}
}

// Close refuses all requests with 503 from now on, also those that are held, and
// waits until late settlements are made, or until ctx ends, whose error it returns.
// Call it after http.Server.Shutdown, and before the limiter's Close. Close may be
// called several times.
func (m *Middleware) Close(ctx context.Context) error {
	m.Release()
	m.unregister()
	m.announce(ctx, nil)
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
	case <-done: // no request was held, or they ended just in time
		return m.settler.wait(ctx)
	default:
		return ctx.Err()
	}
}

// unregister refuses all requests from now on, and makes an event of that pending.
func (m *Middleware) unregister() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed.Swap(true) {
		m.unregisterNames()
		m.pending = append(m.pending, Unregistered)
	}
}
