// The clients that the program names.

package prommetrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/middleware"
)

// maxClients bounds the named clients, because each has a series in each policy that denies it.
const maxClients = 50

// Options tune the [Metrics] of Middlewares. The zero value of each field is a default.
type Options struct {
	// Clients are up to 50 clients whose denials have a series of their own, by the
	// first part of their keys, such as "usr=42". The values become labels: choose
	// names that everyone who reads the metrics may see.
	Clients map[string]string

	// Exemplar returns the labels of an exemplar for the duration of a decision, such as
	// the trace's ID, or nil. Its context is the request's. Nil means no exemplars.
	// Package otelmetrics has one for sampled spans.
	Exemplar func(context.Context) prometheus.Labels
}

func (o *Options) validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ratelimit: metrics: "+format, args...))
	}
	if len(o.Clients) > maxClients {
		refuse("Clients has %d clients: want at most %d", len(o.Clients), maxClients)
	}
	named := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(o.Clients)) {
		name := o.Clients[key]
		if kind, value, _ := strings.Cut(key, "="); kind == "" || value == "" || strings.Contains(key, "|") {
			refuse("the client of the name %q is no first part of a key: want KIND=VALUE, such as usr=42", name)
		}
		if name == "" || !utf8.ValidString(name) || named[name] {
			refuse("the name %q is empty, not UTF-8, or another client's", name)
		}
		named[name] = true
	}
	return errors.Join(errs...)
}

var clientDenials = describe("ratelimit_client_denials", "Denials of a named client in the last 10 to 20 minutes.", "policy", "client")

const rememberedKeys = 128 // TopDenied knows no more

// collectClients collects the denials of the named clients. Policies of one name
// add up.
func (m *Metrics) collectClients(ch chan<- prometheus.Metric) {
	if len(m.clients) == 0 {
		return
	}
	denials := make(map[[2]string]uint64) // by policy and name
	for _, middleware := range m.watchedMiddlewares() {
		for _, p := range middleware.Policies() {
			m.countClients(denials, middleware, p.Name)
		}
	}
	for of, n := range denials {
		ch <- prometheus.MustNewConstMetric(clientDenials, prometheus.GaugeValue, float64(n), of[0], of[1])
	}
}

func (m *Metrics) countClients(denials map[[2]string]uint64, middleware *ratelimit.Middleware, policy string) {
	for _, name := range m.clients {
		denials[[2]string{policy, name}] += 0 // the series exists before the first denial
	}
	for _, o := range middleware.TopDenied(policy, rememberedKeys) {
		first, _, _ := strings.Cut(o.Plain, "|")
		if name, named := m.clients[first]; named {
			denials[[2]string{policy, name}] += o.Denied - o.Error
		}
	}
}
