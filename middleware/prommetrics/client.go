// Metrics of clients.

package prommetrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/middleware/client"
)

// ClientMetrics are an Observer of package client's Transports, for the Options.Observers of each. The zero value does
// not work. They are safe for concurrent use.
type ClientMetrics struct {
	requests *prometheus.CounterVec // by client, outcome
	retries  *prometheus.CounterVec // by client
	waits    *prometheus.CounterVec // by client, reason
	waited   *prometheus.CounterVec // by client, reason; in seconds
	gaveUp   *prometheus.CounterVec // by client, reason
}

var _ client.Observer = (*ClientMetrics)(nil)

// NewClient is [New] for metrics of Transports.
func NewClient(reg prometheus.Registerer) (*ClientMetrics, error) {
	m := &ClientMetrics{
		requests: counter("ratelimit_client_requests_total", "Requests sent, by outcome.", "client", "outcome"),
		retries:  counter("ratelimit_client_retries_total", "Requests sent again after a denial.", "client"),
		waits:    counter("ratelimit_client_waits_total", "Waits of requests, by reason.", "client", "reason"),
		waited:   counter("ratelimit_client_wait_seconds_total", "Time that requests have waited, by reason.", "client", "reason"),
		gaveUp:   counter("ratelimit_client_given_up_total", "Requests not sent, or not sent again after a denial, by reason.", "client", "reason"),
	}
	all := []prometheus.Collector{m.requests, m.retries, m.waits, m.waited, m.gaveUp}
	return register(reg, &collector[ClientMetrics]{m, all, nil, func(chan<- prometheus.Metric) {}})
}

// Observe implements client.Observer.
func (m *ClientMetrics) Observe(_ context.Context, e client.Event) {
	switch e.Kind {
	case client.Registered:
		m.begin(e.Name)
	case client.Sent:
		outcome := "answered"
		switch {
		case e.Err != nil:
			outcome = "failed"
		case e.Denied:
			outcome = "denied"
		}
		m.requests.WithLabelValues(e.Name, outcome).Inc()
		if e.Attempt > 1 {
			m.retries.WithLabelValues(e.Name).Inc()
		}
	case client.Waited:
		m.waits.WithLabelValues(e.Name, e.Reason).Inc()
		m.waited.WithLabelValues(e.Name, e.Reason).Add(e.Elapsed.Seconds())
	case client.GaveUp:
		m.gaveUp.WithLabelValues(e.Name, e.Reason).Inc()
	}
}

// begin makes all series of a client: its first denial would not show in rate() if its
// series began with it.
func (m *ClientMetrics) begin(name string) {
	for _, outcome := range []string{"answered", "denied", "failed"} {
		m.requests.WithLabelValues(name, outcome)
	}
	m.retries.WithLabelValues(name)
	for _, reason := range []string{"retry", "pace", "limit"} {
		m.waits.WithLabelValues(name, reason)
		m.waited.WithLabelValues(name, reason)
	}
	for _, reason := range []string{"wait", "attempts", "request", "final"} {
		m.gaveUp.WithLabelValues(name, reason)
	}
}
