// The sandboxes of all visitors.

package playground

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

const (
	maxSandboxes = 256
	maxOwn       = 8 // of one visitor
	maxStreams   = 256
)

// create answers the ID of a new sandbox. Only its visitor knows the ID.
func (p *Page) create(w http.ResponseWriter, r *http.Request) {
	limit, ok := readLimit(w, r)
	if !ok {
		return
	}
	box := &sandbox{id: rand.Text(), limiter: p.limiter}
	visitor, _, err := p.visitor.Append(nil, &keyfunc.Request{Request: r})
	if err == nil {
		quiet := slog.New(slog.DiscardHandler) // a visitor's bad limit is no finding for operators
		box.m, err = ratelimit.New(p.limiter, &ratelimit.Options{Headers: p.dialect, Logger: quiet}, box.policy(limit))
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "no sandbox could be made")
		return
	}
	box.visitor, box.Handler = string(visitor), box.m.Handler(http.HandlerFunc(serve))
	if !p.add(box) {
		refuse(w, http.StatusServiceUnavailable, "all sandboxes, or all of yours, are in use")
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{"id": box.id, "limit": limit.String()})
}

// add adds a sandbox. If there are too many, or too many of one visitor, it replaces the
// one of them that has been idle for the longest time.
func (p *Page) add(box *sandbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Err() != nil {
		return false
	}
	own := func(other *sandbox) bool { return other.visitor == box.visitor }
	if p.full(maxOwn, own) || p.full(maxSandboxes, func(*sandbox) bool { return true }) {
		return false
	}
	box.used = time.Now()
	p.open[box.id] = box
	return true
}

// full reports whether there is no room for one more among the sandboxes of a
// group. It makes room by closing the sandbox that was idle for the longest
// time. The caller holds mu.
func (p *Page) full(most int, group func(*sandbox) bool) bool {
	var idle *sandbox
	n := 0
	for _, box := range p.open {
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
	delete(p.open, idle.id)
	return false
}

// changeLimit reads the whole request before it uses the sandbox, because a sandbox
// in use cannot be replaced.
func (p *Page) changeLimit(w http.ResponseWriter, r *http.Request) {
	limit, ok := readLimit(w, r)
	if !ok {
		return
	}
	p.using(func(box *sandbox, w http.ResponseWriter, _ *http.Request) { box.setLimit(w, limit) })(w, r)
}

// using returns a handler that serves with the sandbox in the path.
func (p *Page) using(serve func(*sandbox, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		box := p.open[chi.URLParam(r, "id")]
		if box != nil {
			box.users++
		}
		p.mu.Unlock()
		if box == nil {
			refuse(w, http.StatusNotFound, "there is no such sandbox, or it was idle for too long")
			return
		}
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			box.users--
			box.used = time.Now()
		}()
		serve(box, w, r)
	}
}

// Release ends streams and held requests, because a server's Shutdown waits for
// them. From now on it refuses new streams and new sandboxes.
func (p *Page) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	for _, box := range p.open {
		box.m.Release()
	}
}

// Close refuses all requests of sandboxes, and closes their limiter. Call it after
// the server's Shutdown.
func (p *Page) Close(ctx context.Context) (err error) {
	p.Release()
	p.mu.Lock()
	for _, box := range p.open {
		err = errors.Join(err, box.m.Close(ctx))
	}
	p.mu.Unlock()
	if p.gate == nil {
		return err
	}
	return errors.Join(err, p.gate.shared.Close(), p.gate.client.Close())
}
