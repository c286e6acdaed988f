package main

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// A watch is how an operator sees what the limits do: in the log, once per
// change, at /status, and at /metrics. The folder observability has alerts on these, and a
// dashboard.
type watch struct {
	log      *slog.Logger
	metrics  *prommetrics.Metrics
	registry *prometheus.Registry
	status   *ratelimit.Status
}

func newWatch(log *slog.Logger) (*watch, error) {
	w := &watch{log: log, registry: prometheus.NewRegistry(), status: ratelimit.NewStatus()}
	w.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	w.metrics, err = prommetrics.New(w.registry, nil)
	return w, err
}

// observer is told about every verdict.
func (w *watch) observer() ratelimit.Observer { return ratelimit.Observers(w.metrics, w.status) }

// middleware adds what is asked about a middleware when somebody looks.
func (w *watch) middleware(m *ratelimit.Middleware) {
	w.metrics.WatchOffenders(m)
	w.status.Watch(m)
}

// limiter does the same for a limiter.
func (w *watch) limiter(name string, limiter algorithms.Limiter) error {
	return errors.Join(w.metrics.Watch(name, limiter), w.status.WatchLimiter(name, limiter))
}

// page serves the metrics. A service would serve them on an address of its own,
// which its clients do not reach.
func (w *watch) page() http.Handler {
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn)})
}
