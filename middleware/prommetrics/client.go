// Metrics of clients.

package prommetrics

import (
	"context"
	"errors"
	"fmt"

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

// Values of the label outcome.
const (
	outcomeAnswered = "answered"
	outcomeDenied   = "denied"
	outcomeFailed   = "failed"
)

// reasons are the values of the label reason.
var (
	waitReasons   = []string{"retry", "pace", "limit"}
	gaveUpReasons = []string{"wait", "attempts", "request", "final"}
)

// NewClient is [New] for metrics of Transports.
func NewClient(reg prometheus.Registerer) (*ClientMetrics, error) {
	if reg == nil {
		return nil, errors.New("ratelimit: the registerer of the client's metrics is nil: want e.g. prometheus.DefaultRegisterer")
	}
	m := &ClientMetrics{
		requests: counter("ratelimit_client_requests_total", "Requests sent, by outcome.", "client", "outcome"),
		retries:  counter("ratelimit_client_retries_total", "Requests sent again after a denial.", "client"),
		waits:    counter("ratelimit_client_waits_total", "Waits of requests, by reason.", "client", "reason"),
		waited:   counter("ratelimit_client_wait_seconds_total", "Time that requests have waited, by reason.", "client", "reason"),
		gaveUp:   counter("ratelimit_client_given_up_total", "Requests not sent, or not sent again after a denial, by reason.", "client", "reason"),
	}
	c, err := register(reg, &clientCollector{vectors{m.requests, m.retries, m.waits, m.waited, m.gaveUp}, m})
	if err != nil {
		return nil, fmt.Errorf("ratelimit: client's metrics: %w", err)
	}
	return c.metrics, nil
}

// Observe implements client.Observer.
func (m *ClientMetrics) Observe(_ context.Context, e client.Event) {
	switch e.Kind {
	case client.Registered:
		m.begin(e.Name)
	case client.Sent:
		outcome := outcomeAnswered
		switch {
		case e.Err != nil:
			outcome = outcomeFailed
		case e.Denied:
			outcome = outcomeDenied
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
	for _, outcome := range []string{outcomeAnswered, outcomeDenied, outcomeFailed} {
		m.requests.WithLabelValues(name, outcome)
	}
	m.retries.WithLabelValues(name)
	for _, reason := range waitReasons {
		m.waits.WithLabelValues(name, reason)
		m.waited.WithLabelValues(name, reason)
	}
	for _, reason := range gaveUpReasons {
		m.gaveUp.WithLabelValues(name, reason)
	}
}

// A clientCollector is the ClientMetrics as a registry sees them: all metrics or none.
type clientCollector struct {
	vectors
	metrics *ClientMetrics
}
