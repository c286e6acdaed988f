package prommetrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/recent"
)

// Metrics are an Observer of Middlewares, for the Options.Observers of each. The zero value does not work. Metrics are
// safe for concurrent use. A policy takes 16 KB and about 20 series, and 5 more for each tier.
type Metrics struct {
	decisions   *prometheus.CounterVec // by result
	requests    *prometheus.CounterVec // by policy, tier, outcome
	near        *prometheus.CounterVec // by policy, tier
	unknownTier *prometheus.CounterVec // by policy
	abandoned   prometheus.Counter
	bans        *prometheus.CounterVec // by policy
	settlements *prometheus.CounterVec // by result
	lag         prometheus.Histogram
	divergences *prometheus.CounterVec   // by policy, live, candidate
	durations   *prometheus.HistogramVec // by source

	bySource [algorithms.Local + 1]prometheus.Observer
	byResult map[string]prometheus.Counter
	exemplar func(context.Context) prometheus.Labels
	seconds  *recent.Minute                         // requests of each second, offered and admitted
	series   atomic.Pointer[map[seriesName]*series] // copied to add one

	mu          sync.Mutex                         // guards the fields below, and additions to series
	middlewares map[*ratelimit.Middleware]*limiter // with the limiter of each; nil without Stats

	clients map[string]string // names, by first parts of keys
	made    time.Time
}

// Kinds of Metrics.seconds.
const (
	admitted = iota
	offered
	kinds
)

var _ ratelimit.Observer = (*Metrics)(nil)

// buckets are the upper bounds of histograms in seconds, for a Prometheus that
// does not scrape native histograms. They are dense around decisions in memory,
// decisions in Redis, and the default deadline of 50 ms.
var buckets = []float64{25e-6, 100e-6, 250e-6, 500e-6, .001, .0025, .005, .01, .025, .05, .1, .25, 1}

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

// New registers metrics with reg and returns them; nil options mean the defaults. If reg has them already, New
// returns the same again, with their first options. It fails if reg is nil or has other metrics of these names, or if
// the options are misconfigured.
func New(reg prometheus.Registerer, o *Options) (*Metrics, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := newMetrics(o)
	return register(reg, &collector[Metrics]{m, []prometheus.Collector{
		m.decisions, m.requests, m.near, m.unknownTier, m.abandoned, m.bans, m.settlements, m.lag, m.divergences, m.durations,
	}, descriptions, m.collect})
}

func newMetrics(o *Options) *Metrics {
	m := &Metrics{
		decisions:   counter("ratelimit_decisions_total", "Requests by result, each counted once.", "result"),
		near:        counter("ratelimit_near_limit_total", "Admitted requests that leave less than a fifth of the limit.", "policy", "tier"),
		requests:    counter("ratelimit_requests_total", "Requests by policy, tier and outcome.", "policy", "tier", "outcome"),
		unknownTier: counter("ratelimit_unknown_tier_requests_total", "Requests with a tier that the policy does not have.", "policy"),
		abandoned:   prometheus.NewCounter(prometheus.CounterOpts{Name: "ratelimit_abandoned_requests_total", Help: "Held requests that were not served."}),
		bans:        counter("ratelimit_bans_total", "Keys that the policy banned.", "policy"),
		settlements: counter("ratelimit_settlements_total", "Late charges and returns by result.", "result"),
		lag:         prometheus.NewHistogram(histogram("ratelimit_settlement_lag_seconds", "Delay of settlements after they are due.")),
		divergences: counter("ratelimit_candidate_divergences_total",
			"Requests that the policy's candidate would have decided otherwise.", "policy", "live", "candidate"),
		durations: prometheus.NewHistogramVec(
			histogram("ratelimit_decision_duration_seconds", "Duration of decisions by source."), []string{"source"}),
		byResult:    make(map[string]prometheus.Counter),
		middlewares: make(map[*ratelimit.Middleware]*limiter),
		made:        time.Now(),
		clients:     maps.Clone(o.Clients),
		exemplar:    o.Exemplar,
		seconds:     recent.NewMinute(kinds, time.Second, 0),
	}
	m.series.Store(&map[seriesName]*series{})
	for source := range m.bySource {
		m.bySource[source] = m.durations.WithLabelValues(algorithms.Source(source).String())
	}
	for _, result := range []string{"allowed", "denied", "refused"} {
		m.byResult[result] = m.decisions.WithLabelValues(result)
	}
	for _, result := range []string{"made", "failed", "dropped"} {
		m.settlements.WithLabelValues(result)
	}
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		// A native bucket is at most a tenth wider than the one before. A histogram
		// that has more buckets than these merges some, for an hour.
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 120, NativeHistogramMinResetDuration: time.Hour,
	}
}

// descriptions are those of all metrics that a scrape computes.
var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	descriptions = append(descriptions, d)
	return d
}

// startTime tells a counter of a young process from one that Prometheus has not
// scraped before: all that a young process has counted is recent.
var startTime = describe("ratelimit_start_time_seconds", "Unix time since which the counters count.")

var busiestSecond = describe("ratelimit_busiest_second_requests", "Requests in the busiest second of the last minute: offered, and admitted to handlers.", "seen")

func (m *Metrics) collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(startTime, prometheus.GaugeValue, float64(m.made.UnixMilli())/1000)
	now := time.Since(m.made)
	for kind, seen := range []string{admitted: "admitted", offered: "offered"} { // in this order, because each request is offered first
		busiest := slices.Max(m.seconds.Ticks(now, kind))
		ch <- prometheus.MustNewConstMetric(busiestSecond, prometheus.GaugeValue, float64(busiest), seen)
	}
	m.collectGauges(ch)
	m.collectLimiters(ch)
}

// A collector is metrics as a registry sees them. A registry registers the one
// collector, and so all metrics or none.
type collector[M any] struct {
	metrics  *M
	vectors  []prometheus.Collector
	computed []*prometheus.Desc // of collect
	collect  func(chan<- prometheus.Metric)
}

// register registers a collector, and returns its metrics, or those of its type that have been registered before.
func register[M any](reg prometheus.Registerer, c *collector[M]) (*M, error) {
	if reg == nil {
		return nil, errors.New("ratelimit: the registerer of the metrics is nil: want e.g. prometheus.DefaultRegisterer")
	}
	err := reg.Register(c)
	if before := (prometheus.AlreadyRegisteredError{}); errors.As(err, &before) {
		if existing, ok := before.ExistingCollector.(*collector[M]); ok {
			return existing.metrics, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ratelimit: metrics: %w", err)
	}
	return c.metrics, nil
}

// Describe implements prometheus.Collector.
func (c *collector[M]) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range c.vectors {
		v.Describe(ch)
	}
	for _, d := range c.computed {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector[M]) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.vectors {
		v.Collect(ch)
	}
	c.collect(ch)
}
