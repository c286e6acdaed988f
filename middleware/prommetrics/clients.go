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
