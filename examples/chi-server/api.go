// The API: its parts, its routes with their limits, and the order of its end.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// An api is everything that the server serves.
type api struct {
	handler http.Handler
	backend *backend
	page    *playground.Page
	limited []*ratelimit.Middleware // one for each row of limits
}

// A backend is where limits count, and where operators' overrides are stored.
type backend struct {
	limiter algorithms.Limiter
	table   table
	close   func() error
}

// newBackend returns a backend in Redis, or in memory without -redis.
func newBackend(ctx context.Context, c config, w *watch) (*backend, error) {
	switch {
	case c.limiter != nil:
		return &backend{c.limiter, overrides.NewMemory(), func() error { return nil }}, nil
	case c.redis != nil:
		return newShared(ctx, c, w)
	}
	memory := algorithms.NewMemory(&algorithms.MemoryOptions{Now: c.log.clock()})
	return &backend{c.log.of(memory), overrides.NewMemory(), func() error { return nil }}, nil
}

// newAPI returns an api, which the caller closes.
func newAPI(ctx context.Context, c config, log *slog.Logger) (*api, error) {
	w, err := newWatch(c, log)
	if err != nil {
		return nil, err
	}
	b, err := newBackend(ctx, c, w)
	if err != nil {
		return nil, err
	}
	page, err := newPage(c)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	a := &api{backend: b, page: page}
	if err := a.route(c, w); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	if err := setOverrides(ctx, c.overrides, b.table); err != nil {
		log.Error("the overrides of -override could not be set", "error", err)
	}
	return a, nil
}

// newPage returns the page at /. With -demo-outage, its sandboxes count in Redis,
// through a client and under a prefix of their own. Their outages are not the API's.
func newPage(c config) (*playground.Page, error) {
	o := &playground.Options{Headers: c.headers, Prefix: c.prefix + "-demo", Visitor: c.clientIP()}
	if c.demoOutage {
		o.Redis = c.redis.open()
	}
	return playground.New(o)
}

// route makes the handler: each route behind its limits.
func (a *api) route(c config, w *watch) error {
	limit, err := a.limit(c, w)
	if err != nil {
		return err
	}
	r := chi.NewRouter()
	r.Use(chimiddleware.Recoverer, chimiddleware.GetHead) // a HEAD counts as a GET
	r.With(limit["orders"]).Get("/v1/orders/{id}", getOrder)
	r.With(limit["search"]).Get("/v1/search", search)
	r.With(limit["reports"]).Get("/v1/reports", reports)
	r.With(limit["exports"]).Get("/v1/exports", exports)
	r.With(limit["login"]).Post("/v1/login", login)
	r.With(limit["sms"]).Post("/v1/sms", sendSMS)
	r.With(limit["charges-merchant"]).Post("/v1/charges", createCharge)
	r.With(limit["completions"]).Post("/v1/completions", complete)
	r.Get("/healthz", health)
	// A service would serve these three on an address that its clients do not reach.
	r.Method(http.MethodGet, "/metrics", w.page())
	r.Handle("/status", w.status)
	if c.adminToken != "" {
		console, err := admin(c.adminToken, a.limited)
		if err != nil {
			return err
		}
		r.With(limit["console"]).Handle("/admin/*", console)
	}
	a.page.Mount(r, limit["demo"])
	r.NotFound(limit["unmatched"](http.HandlerFunc(notFound)).ServeHTTP)
	r.MethodNotAllowed(limit["unmatched"](methodNotAllowed(r)).ServeHTTP)
	a.handler = c.log.middleware(r)
	return nil
}

// clientIP finds the addresses of clients.
func (c config) clientIP() keyfunc.Key {
	return keyfunc.IP(&keyfunc.IPOptions{Trusted: c.trusted})
}

// limit makes the middlewares of limits. It returns each under the name of the
// first policy of its row.
func (a *api) limit(c config, w *watch) (map[string]func(http.Handler) http.Handler, error) {
	named := make(map[string]func(http.Handler) http.Handler)
	var errs error
	for _, policies := range limits {
		o := &ratelimit.Options{
			ClientIP:  c.clientIP(),
			Headers:   c.headers,
			Overrides: a.backend.table,
			Observers: w.observers(),
			Logger:    w.log,
		}
		name := policies[0].Name
		if name == "console" {
			o.Overrides = nil // operators may switch off every limit except that on guesses of their token
		}
		m, err := ratelimit.New(a.backend.limiter, o, policies...)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		named[name], a.limited = m.Handler, append(a.limited, m)
	}
	return named, errs
}

// release ends streams and held requests, because Shutdown waits for them.
func (a *api) release() {
	for _, m := range a.limited {
		m.Release()
	}
	a.page.Release()
}

// close waits for late settlements, and then closes the limiters.
func (a *api) close(ctx context.Context) error {
	errs := make([]error, len(a.limited))
	var closing sync.WaitGroup
	for i, m := range a.limited {
		closing.Go(func() { errs[i] = m.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errors.Join(errs...), a.page.Close(ctx), a.backend.close())
}
