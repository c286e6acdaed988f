// Package demo is the page of the example server: it sends requests to the API
// and shows what its limits make of them, has sandboxes whose limits visitors
// may change, and plays the same traffic to all five algorithms.
//
// It is part of an example, and no API for others.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

const maxBody = 1 << 10 // bytes

// A Route is something that the page can send.
type Route struct {
	Title  string `json:"title"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty"`
	Policy string `json:"policy"`
	Limit  string `json:"limit"` // as algorithms.ParseLimit reads it
	Note   string `json:"note"`
}

// Options say what the page shows. The zero value is a page without routes.
type Options struct {
	// Routes are those of the API, in the order of the page.
	Routes []Route

	// Headers are the families of headers that answers of sandboxes carry; 0
	// means those of the middleware.
	Headers headers.Dialect

	// Redis, if not nil, is where sandboxes count, and the page then has a switch
	// that takes it away from them. It must be a client of their own, which
	// Close closes, and New if it fails; nil means memory.
	Redis redis.UniversalClient

	// Prefix is that of the sandboxes' keys in Redis.
	Prefix string
}

// A Demo serves the page. It is safe for concurrent use.
type Demo struct {
	routes    []Route
	files     map[string]file
	sandboxes *sandboxes
	gate      *gate // nil without Redis
}

// New returns a Demo; nil options mean the defaults. It must be closed.
func New(o *Options) (*Demo, error) {
	if o == nil {
		o = &Options{}
	}
	d := &Demo{routes: o.Routes}
	var err error
	if d.files, err = readFiles(); err != nil {
		return nil, err
	}
	var limiter algorithms.Limiter
	if o.Redis == nil {
		limiter = algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 100 * maxSandboxes})
	} else {
		d.gate = &gate{client: o.Redis}
		if limiter, err = d.gate.limiter(o.Prefix); err != nil {
			return nil, errors.Join(err, o.Redis.Close())
		}
	}
	d.sandboxes = newSandboxes(limiter, d.gate, o.Headers)
	return d, nil
}

// Mount adds the page, its files, and behind guard what they ask for. guard
// limits how often one client may ask.
func (d *Demo) Mount(r chi.Router, guard func(http.Handler) http.Handler) {
	for path, f := range d.files {
		r.Method(http.MethodGet, path, f)
	}
	r.With(guard).Route("/demo", func(r chi.Router) {
		r.Get("/routes", d.listRoutes)
		r.Get("/compare", compare)
		own := r.With(http.NewCrossOriginProtection().Handler) // no other site can use a visitor's browser
		own.Post("/sandboxes", d.sandboxes.create)
		own.Post("/sandboxes/{id}/limit", d.sandboxes.using(changeLimit))
		own.Post("/sandboxes/{id}/requests", d.sandboxes.using(request))
		own.Get("/sandboxes/{id}/events", d.sandboxes.using(d.sandboxes.stream))
		if d.gate != nil {
			own.Post("/outage", d.gate.turn)
		}
	})
}

// End ends streams and releases requests that are held, for which a server that
// shuts down would wait. What comes from now on is answered 503.
func (d *Demo) End(ctx context.Context) error { return d.sandboxes.end(ctx) }

// Close ends the limiter of the sandboxes, after the server has ended.
func (d *Demo) Close() error {
	if d.gate == nil {
		return nil
	}
	return errors.Join(d.gate.shared.Close(), d.gate.client.Close())
}

func (d *Demo) listRoutes(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"routes": d.routes, "redis": d.gate != nil})
}

// read decodes a small body of JSON, and answers 400 if it cannot.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "want a small JSON object")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, why string) {
	writeJSON(w, status, map[string]any{"error": why})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
