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
	"github.com/penstock-go/penstock/keyfunc"
)

const (
	maxSandboxes = 256
	maxOwn       = 8 // of one visitor
	maxStreams   = 256
)

// sandboxes are all sandboxes. If there are too many, or too many of one visitor, a
// new sandbox replaces the one of them that has been idle for the longest time.
type sandboxes struct {
	limiter algorithms.Limiter
	gate    *gate
	dialect headers.Dialect
	visitor keyfunc.Key

	mu      sync.Mutex
	open    map[string]*sandbox // guarded by mu
	streams chan struct{}       // has an element for each
	ended   context.Context     // until release
	end     context.CancelFunc
}

func newSandboxes(limiter algorithms.Limiter, g *gate, dialect headers.Dialect, visitor keyfunc.Key) *sandboxes {
	s := &sandboxes{
		limiter: limiter, gate: g, dialect: dialect, visitor: visitor,
		open: make(map[string]*sandbox), streams: make(chan struct{}, maxStreams),
	}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// create answers the ID of a new sandbox. Only its visitor knows the ID.
func (s *sandboxes) create(w http.ResponseWriter, r *http.Request) {
	limit, ok := readLimit(w, r)
	if !ok {
		return
	}
	box, err := newSandbox(rand.Text(), s.limiter, limit, s.dialect)
	if err == nil {
		var visitor []byte
		visitor, _, err = s.visitor.Append(nil, &keyfunc.Request{Request: r})
		box.visitor = string(visitor)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "no sandbox could be made")
		return
	}
	if !s.add(box) {
		refuse(w, http.StatusServiceUnavailable, "all sandboxes, or all of yours, are in use")
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{"id": box.id, "limit": limit.String()})
}

func (s *sandboxes) add(box *sandbox) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		return false
	}
	own := func(other *sandbox) bool { return other.visitor == box.visitor }
	if s.full(maxOwn, own) || s.full(maxSandboxes, func(*sandbox) bool { return true }) {
		return false
	}
	box.used = time.Now()
	s.open[box.id] = box
	return true
}

// full reports whether there is no room for one more among the sandboxes of a
// group. It makes room by closing the sandbox that was idle for the longest
// time. The caller holds mu.
func (s *sandboxes) full(most int, group func(*sandbox) bool) bool {
	var idle *sandbox
	n := 0
	for _, box := range s.open {
		if !group(box) {
			continue
		}
		n++
		if box.users == 0 && (idle == nil || box.used.Before(idle.used)) {
			idle = box
		}
	}
	if n < most {
		return false
	}
	if idle == nil {
		return true
	}
	delete(s.open, idle.id)
	return false
}

// changeLimit reads the whole request before it uses the sandbox, because a sandbox
// in use cannot be replaced.
func (s *sandboxes) changeLimit(w http.ResponseWriter, r *http.Request) {
	limit, ok := readLimit(w, r)
	if !ok {
		return
	}
	s.using(func(box *sandbox, w http.ResponseWriter, _ *http.Request) { box.setLimit(w, limit) })(w, r)
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

// release ends streams and held requests. It may be called several times.
func (s *sandboxes) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
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
