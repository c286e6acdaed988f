// What operators see of the limits.

package main

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// A watch shows operators the limits: in the log, at /status, and at /metrics. The
// folder observability has alerts and a dashboard for the metrics.
type watch struct {
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *prommetrics.Metrics
	status   *statuspage.Page
}

func newWatch(c config, log *slog.Logger) (*watch, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics, err := prommetrics.New(registry)
	if err != nil {
		return nil, err
	}
	status := &statuspage.Options{}
	if c.adminToken != "" {
		status.Console = `curl -H "Authorization: Bearer $TOKEN" http://` + c.addr + "/admin"
	}
	return &watch{log, registry, metrics, statuspage.New(status)}, nil
}

// observers receive the events of all middlewares.
func (w *watch) observers() []ratelimit.Observer { return []ratelimit.Observer{w.metrics, w.status} }

// scrapes is how many scrapes may be under way. If a busy machine answers later than
// Prometheus asks again, they must not pile up.
const scrapes = 4

// page serves the metrics. A service would serve them on an address that its
// clients do not reach.
func (w *watch) page() http.Handler {
	return promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: scrapes,
	})
}
