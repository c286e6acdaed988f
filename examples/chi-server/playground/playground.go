// Package playground is the page of the example server. It sends requests to the
// API and shows what its limits decide. It has sandboxes whose limits visitors may
// change, and it sends the same traffic to all seven limits.
//
// It is a part of the example, and no API for others.
package playground

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

const (
	maxBody    = 1 << 10         // bytes
	readWithin = 5 * time.Second // a body
)

// Options tune a Page. The zero value of each field is a default.
type Options struct {
	// Headers are the families of fields in the answers of sandboxes.
	Headers headers.Dialect

	// Redis stores the counts of the sandboxes; nil means memory. With Redis, the
	// page can simulate an outage for the sandboxes, so the client must be theirs
	// alone. Close closes it, and so does New on an error.
	Redis redis.UniversalClient

	// Prefix begins the sandboxes' keys in Redis.
	Prefix string

	// Visitor says who is one visitor. Each has at most eight sandboxes. The zero
	// Key means the peer of the connection.
	Visitor keyfunc.Key
}

// A Page serves the page. It is safe for concurrent use.
type Page struct {
	files   map[string]file
	id      string // of this process, so that a page notices a restart
	limiter algorithms.Limiter
	gate    *gate // nil without Redis
	dialect headers.Dialect
	visitor keyfunc.Key

	mu      sync.Mutex
	open    map[string]*sandbox // by their IDs; guarded by mu
	streams chan struct{}       // has an element for each
	ended   context.Context     // until Release
	end     context.CancelFunc
}

// New returns a Page, which the caller closes.
func New(o Options) (*Page, error) {
	p := &Page{
		files: readFiles(), id: rand.Text(), dialect: o.Headers, visitor: o.Visitor,
		open: make(map[string]*sandbox), streams: make(chan struct{}, maxStreams),
	}
	if o.Redis == nil {
		p.limiter = algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 100 * maxSandboxes})
	} else {
		p.gate = &gate{client: o.Redis}
		var err error
		p.gate.shared, err = shared.New(p.gate, &shared.Options{
			Prefix: o.Prefix,
			Logger: slog.New(slog.DiscardHandler), // visitors make these outages, so operators need not know
		})
		if err != nil {
			return nil, errors.Join(err, o.Redis.Close())
		}
		p.limiter = p.gate.shared
	}
	if p.visitor == (keyfunc.Key{}) {
		p.visitor = keyfunc.Peer()
	}
	p.ended, p.end = context.WithCancel(context.Background())
	return p, nil
}

// Mount adds the page, its files, and the page's own requests, which guard limits.
// guard must bound the requests of a visitor that are open at once: a stream is open
// for minutes.
func (p *Page) Mount(r chi.Router, guard func(http.Handler) http.Handler) {
	for path, f := range p.files {
		r.Method(http.MethodGet, path, f)
	}
	r.With(guard).Route("/demo", func(r chi.Router) {
		r.Get("/routes", p.listRoutes)
		r.Get("/compare", compare)
		own := r.With(http.NewCrossOriginProtection().Handler) // no other site can use a visitor's browser
		own.Post("/sandboxes", p.create)
		own.Post("/sandboxes/{id}/limit", p.changeLimit)
		own.Post("/sandboxes/{id}/requests", p.using((*sandbox).ServeHTTP))
		own.Get("/sandboxes/{id}/events", p.using(p.stream))
		if p.gate != nil {
			own.Post("/outage", p.gate.turn)
		}
	})
}

func (p *Page) listRoutes(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"routes": Routes, "redis": p.gate != nil, "server": p.id})
}

// read decodes a small JSON object, and answers 400 to any other body. Hold nothing
// that others need meanwhile: a client may take long to send it.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin)) // recorders in tests have none
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

// readLimit reads {"limit":"token-bucket 10/10s burst 10"}. It answers 400 to a
// limit outside the bounds.
func readLimit(w http.ResponseWriter, r *http.Request) (algorithms.Limit, bool) {
	var ask struct{ Limit string }
	if !read(w, r, &ask) {
		return algorithms.Limit{}, false
	}
	limit, why := instruments.ReadLimit(ask.Limit)
	if why != "" {
		refuse(w, http.StatusBadRequest, why)
	}
	return limit, why == ""
}

func compare(w http.ResponseWriter, r *http.Request) {
	a := instruments.Compare(r.Context(), r.URL.Query())
	writeJSON(w, a.Status, json.RawMessage(a.Body))
}
