// The API: its routes with their limits, and what operators see and change of them.

package main

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/examples/chi-server/playground"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/prommetrics"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// An api is everything that the server serves.
type api struct {
	router  *chi.Mux
	backend *backend
	page    *playground.Page
	limited []*ratelimit.Middleware // one for each row of limits
}

// newAPI returns an api with each route behind its limits. The caller closes it. The
// api closes the backend, also on an error.
func newAPI(ctx context.Context, c config, b *backend, log *slog.Logger) (a *api, err error) {
	a = &api{router: chi.NewRouter(), backend: b}
	defer func() {
		if err != nil {
			a, err = nil, errors.Join(err, a.close(ctx))
		}
	}()
	clientIP := keyfunc.IP(&keyfunc.IPOptions{Trusted: c.trusted})
	page := playground.Options{Headers: c.headers, Prefix: c.prefix + "-demo", Visitor: clientIP}
	if c.outage {
		page.Redis = c.redis.Open()
	}
	if a.page, err = playground.New(page); err != nil {
		return a, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics, err := prommetrics.New(registry, &prommetrics.Options{Clients: playground.Names})
	if err != nil {
		return a, err
	}
	shown := &statuspage.Options{}
	if c.adminToken != "" {
		shown.Console = `curl -H "Authorization: Bearer $TOKEN" http://` + c.addr + "/admin"
	}
	status := statuspage.New(shown)
	limit := a.limit(c, &ratelimit.Options{
		ClientIP: clientIP, Headers: c.headers, Overrides: b.table, Observers: []ratelimit.Observer{metrics, status}, Logger: log,
	})
	r := a.router
	r.Use(chimiddleware.Recoverer, chimiddleware.GetHead) // a HEAD counts as a GET
	r.With(limit["orders"]).Get("/v1/orders/{id}", getOrder)
	r.With(limit["search"]).Get("/v1/search", search)
	r.With(limit["reports"]).Get("/v1/reports", answer(map[string]any{"reports": []string{"2026-10"}}))
	r.With(limit["exports"]).Get("/v1/exports", answer(map[string]any{"exports": []string{}}))
	r.With(limit["login"]).Post("/v1/login", login)
	r.With(limit["sms"]).Post("/v1/sms", answer(map[string]any{"sent": true}))
	r.With(limit["charges-merchant"]).Post("/v1/charges", createCharge)
	r.With(limit["completions"]).Post("/v1/completions", complete)
	r.Get("/healthz", answer(map[string]any{"status": "ok"}))
	// A service would serve these three on an address that its clients do not reach.
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4, // slow scrapes must not pile up
	}))
	r.Handle("/status", status)
	if c.adminToken != "" {
		operate := console.New(a.limited...)
		operate.Instances = c.consoles
		operators, err := operate.Handler(c.operator)
		if err != nil {
			return a, err
		}
		r.With(limit["console"]).Handle("/admin/*", http.StripPrefix("/admin", operators))
	}
	a.page.Mount(r, limit["demo"])
	r.NotFound(limit["unmatched"](http.HandlerFunc(notFound)).ServeHTTP)
	r.MethodNotAllowed(limit["unmatched"](methodNotAllowed(r)).ServeHTTP)
	return a, nil
}

// limit makes the middlewares of limits. It returns each under the name of the
// first policy of its row. It panics if the table is misconfigured.
func (a *api) limit(c config, all *ratelimit.Options) map[string]func(http.Handler) http.Handler {
	named := make(map[string]func(http.Handler) http.Handler)
	for _, policies := range limits {
		o, name := *all, policies[0].Name
		if name == "console" {
			o.Overrides = nil // operators may switch off every limit except that on guesses of their token
			// The right token always passes: no outsider locks operators out, also behind a proxy that shares one address.
			policies = slices.Clone(policies)
			policies[0].Skip = func(r *http.Request) bool { _, err := c.operator(r); return err == nil }
		}
		m := ratelimit.Must(ratelimit.New(a.backend.limiter, &o, policies...))
		named[name], a.limited = m.Handler, append(a.limited, m)
	}
	return named
}

// operator returns the name of the operator who sends a request with the token: the user of Basic authorization, whose
// password is the token, as curl -u alice:TOKEN sends it. With a Bearer token no name is known.
func (c config) operator(r *http.Request) (string, error) {
	who, given, basic := r.BasicAuth()
	if !basic {
		var scheme string
		if scheme, given, _ = strings.Cut(r.Header.Get("Authorization"), " "); !strings.EqualFold(scheme, "Bearer") {
			given = ""
		}
	}
	if given == "" || subtle.ConstantTimeCompare([]byte(given), []byte(c.adminToken)) == 0 {
		return "", errors.New("not the token of -admin-token")
	}
	return cmp.Or(who, "operator"), nil
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
	var errs []error
	for _, m := range a.limited {
		errs = append(errs, m.Close(ctx))
	}
	if a.page != nil {
		errs = append(errs, a.page.Close(ctx))
	}
	return errors.Join(append(errs, a.backend.close())...)
}
