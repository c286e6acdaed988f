// Package delayed holds requests until their turns, and ends the waiting when a service
// shuts down.
package delayed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed is the error of requests after Release, or after the middleware's Close.
var ErrClosed = errors.New("ratelimit: the middleware is closed")

// Requests are the held requests of a Middleware. It is safe for concurrent use.
type Requests struct {
	mu       sync.Mutex // orders held.Add before Wait
	released context.Context
	release  context.CancelFunc
	held     sync.WaitGroup
}

// New returns Requests, none of them held.
func New() *Requests {
	r := new(Requests)
	r.released, r.release = context.WithCancel(context.Background())
	return r
}

// Hold waits for a time. If ctx ends first, or Release is called, Hold calls abandon with
// the context's error or [ErrClosed]. Wait waits until abandon has returned, unless Hold
// was called after Release.
func (r *Requests) Hold(ctx context.Context, d time.Duration, abandon func(why error)) {
	r.mu.Lock()
	if r.released.Err() != nil {
		r.mu.Unlock()
		abandon(ErrClosed)
		return
	}
	r.held.Add(1)
	r.mu.Unlock()
	defer r.held.Done()
	turn := time.NewTimer(d)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
		abandon(ctx.Err())
	case <-r.released.Done():
		abandon(ErrClosed)
	}
}

// Release ends the waiting of all requests, also of later ones. It does not wait. It may be
// called repeatedly.
func (r *Requests) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release()
}

// Wait waits until no request is held, or until ctx ends, whose error it returns. Call it
// after Release.
func (r *Requests) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		r.held.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done: // no request was held, or they ended just in time
		return nil
	default:
		return ctx.Err()
	}
}
