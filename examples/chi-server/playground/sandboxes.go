// The sandboxes of all visitors.

package playground

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

const (
	maxSandboxes = 64
	maxStreams   = 32
)

// sandboxes are all sandboxes. If there are too many, a new sandbox replaces the
// one that has been idle for the longest time.
type sandboxes struct {
	limiter algorithms.Limiter
	gate    *gate
	dialect headers.Dialect

	mu      sync.Mutex
	open    map[string]*sandbox // guarded by mu
	streams int                 // guarded by mu
	ended   chan struct{}       // closed by release
}

func newSandboxes(limiter algorithms.Limiter, g *gate, dialect headers.Dialect) *sandboxes {
	return &sandboxes{limiter: limiter, gate: g, dialect: dialect, open: make(map[string]*sandbox), ended: make(chan struct{})}
}

// create answers the ID of a new sandbox. Only its visitor knows the ID.
func (s *sandboxes) create(w http.ResponseWriter, r *http.Request) {
	limit, ok := readLimit(w, r)
	if !ok {
		return
	}
	box, err := newSandbox(rand.Text(), s.limiter, limit, s.dialect)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "no sandbox could be made")
		return
	}
	if !s.add(box) {
		refuse(w, http.StatusServiceUnavailable, "all sandboxes are in use")
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{"id": box.id, "limit": limit.String()})
}

func (s *sandboxes) add(box *sandbox) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasEnded() {
		return false
	}
	if len(s.open) >= maxSandboxes {
		idle := s.longestIdle()
		if idle == nil {
			return false
		}
		delete(s.open, idle.id)
	}
	box.used = time.Now()
	s.open[box.id] = box
	return true
}

// longestIdle returns nil if all sandboxes are in use. The caller holds mu.
func (s *sandboxes) longestIdle() *sandbox {
	var idle *sandbox
	for _, box := range s.open {
		if box.users == 0 && (idle == nil || box.used.Before(idle.used)) {
			idle = box
		}
	}
	return idle
}

// using returns a handler that serves with the sandbox in the path.
func (s *sandboxes) using(serve func(*sandbox, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		box := s.open[chi.URLParam(r, "id")]
		if box != nil {
			box.users++
		}
		s.mu.Unlock()
		if box == nil {
			refuse(w, http.StatusNotFound, "there is no such sandbox, or it was idle for too long")
			return
		}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			box.users--
			box.used = time.Now()
		}()
		serve(box, w, r)
	}
}

// hasEnded reports whether release was called.
func (s *sandboxes) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// release ends streams and held requests. It may be called several times.
func (s *sandboxes) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasEnded() {
		close(s.ended)
	}
	for _, box := range s.open {
		box.m.Release()
	}
}

// close refuses all requests of sandboxes.
func (s *sandboxes) close(ctx context.Context) error {
	s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs error
	for _, box := range s.open {
		errs = errors.Join(errs, box.m.Close(ctx))
	}
	return errs
}
