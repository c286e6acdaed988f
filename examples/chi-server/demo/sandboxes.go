package demo

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

// sandboxes are all that there are. When there are too many, a new one takes
// the place of the one that was not in use for the longest time.
type sandboxes struct {
	limiter algorithms.Limiter
	gate    *gate
	dialect headers.Dialect

	mu      sync.Mutex
	open    map[string]*sandbox // guarded by mu, as is what follows
	streams int
	ended   chan struct{} // closed at the end
}

func newSandboxes(limiter algorithms.Limiter, g *gate, dialect headers.Dialect) *sandboxes {
	return &sandboxes{limiter: limiter, gate: g, dialect: dialect, open: make(map[string]*sandbox), ended: make(chan struct{})}
}

// create answers the id of a new sandbox, which is a secret of its visitor.
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

// longestIdle returns nil if all are in use. It requires mu.
func (s *sandboxes) longestIdle() *sandbox {
	var idle *sandbox
	for _, box := range s.open {
		if box.users == 0 && (idle == nil || box.used.Before(idle.used)) {
			idle = box
		}
	}
	return idle
}

// using serves with the sandbox that the path names.
func (s *sandboxes) using(serve func(*sandbox, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		box := s.open[chi.URLParam(r, "id")]
		if box != nil {
			box.users++
		}
		s.mu.Unlock()
		if box == nil {
			refuse(w, http.StatusNotFound, "there is no such sandbox, or it was not used for long")
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

// hasEnded requires mu, or a caller who bears that it may end at once.
func (s *sandboxes) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// end ends streams, and refuses what is held and what comes from now on.
func (s *sandboxes) end(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasEnded() {
		close(s.ended)
	}
	var errs error
	for _, box := range s.open {
		errs = errors.Join(errs, box.m.Close(ctx))
	}
	return errs
}
