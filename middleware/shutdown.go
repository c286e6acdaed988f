package ratelimit

import (
	"context"
	"errors"
)

// ErrClosed is the error of requests and Updates after Close, and of held
// requests after Release.
var ErrClosed = errors.New("ratelimit: the middleware is closed")

// Release refuses with 503 all requests that are or would be held, and returns
// their takes. It does not wait. Register it, because net/http's Shutdown waits
// for held requests:
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

// Close refuses all requests with 503 from now on, and waits until late
// settlements are made, or until ctx ends, whose error it returns. Before it returns,
// it waits up to two seconds for the handler of the log. Call it after http.Server.Shutdown, and
// before the limiter's Close. You may call it repeatedly.
func (m *Middleware) Close(ctx context.Context) error {
	m.Release()
	m.unregister()
	m.announce(ctx)
	defer m.log.Close()
	done := make(chan struct{})
	go func() {
		m.held.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done: // no request was held, or they ended just in time
		default:
			return ctx.Err()
		}
	}
	return m.settler.Wait(ctx)
}

// unregister refuses all requests from now on, and makes an event of that
// pending.
func (m *Middleware) unregister() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed.Swap(true) {
		m.pending = append(m.pending, Unregistered)
	}
}
