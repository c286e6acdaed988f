package prommetrics

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// Metrics count what middlewares and limiters do. They are a middleware's
// Observer, and Watch limiters.
//
// Metrics are safe for concurrent use, and any number of middlewares may share
// them.
type Metrics struct {
	requests    *prometheus.CounterVec // by policy, tier, outcome
	unknownTier *prometheus.CounterVec // by policy
	abandoned   *prometheus.CounterVec // by policy
	bans        *prometheus.CounterVec // by policy
	settlements *prometheus.CounterVec // by policy, result
	lag         prometheus.Histogram
	divergences *prometheus.CounterVec   // by policy, live, candidate
	durations   *prometheus.HistogramVec // by source

	bySource [algorithms.Local + 1]prometheus.Observer
	series   atomic.Pointer[map[seriesName]*series] // copied when one is added

	mu          sync.Mutex // guards the fields below, and additions to series
	policies    map[string]*policySeries
	limiters    map[string]statsLimiter
	middlewares []*ratelimit.Middleware
}

var _ ratelimit.Observer = (*Metrics)(nil)

// Options tune [Metrics]. The zero value of each field is a default.
type Options struct {
	// Buckets are the upper bounds of ratelimit_decision_duration_seconds, in
	// seconds, for a Prometheus that does not scrape native histograms; nil
	// means 25 µs to 1 s.
	Buckets []float64
}

// defaultBuckets are dense where decisions in memory, in Redis, and at the
// default deadline of 50 ms are.
var defaultBuckets = []float64{25e-6, 100e-6, 250e-6, 500e-6, .001, .0025, .005, .01, .025, .05, .1, .25, 1}

const (
	// A native bucket is at most a tenth wider than the one before. There are
	// no more than this many, and they shrink again after an hour.
	nativeFactor  = 1.1
	nativeBuckets = 120
	nativeReset   = time.Hour
)

// New returns metrics that are registered with reg; nil options mean the
// defaults. What has been registered there before is returned again, with the
// options that it has. An error means that reg has other metrics of one of these
// names.
//
// To tell several sets of metrics in one registry apart, register each with a
// prometheus.WrapRegistererWith of its own.
func New(reg prometheus.Registerer, o *Options) (*Metrics, error) {
	if o == nil {
		o = &Options{}
	}
	buckets := o.Buckets
	if buckets == nil {
		buckets = defaultBuckets
	}
	var errs []error
	if reg == nil {
		errs = append(errs, errors.New("prommetrics: the registerer is nil"))
	}
	for i := 1; i < len(buckets); i++ {
		if !(buckets[i-1] < buckets[i]) {
			errs = append(errs, fmt.Errorf("prommetrics: Buckets are %v; each must be greater than the one before", buckets))
			break
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	m := newMetrics(buckets)
	err := reg.Register((*collector)(m))
	if before := (prometheus.AlreadyRegisteredError{}); errors.As(err, &before) {
		if c, ok := before.ExistingCollector.(*collector); ok {
			return (*Metrics)(c), nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("prommetrics: %w", err)
	}
	return m, nil
}

func newMetrics(buckets []float64) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		requests: counter("ratelimit_requests_total",
			"Requests by what each policy made of them.", "policy", "tier", "outcome"),
		unknownTier: counter("ratelimit_unknown_tier_requests_total",
			"Requests that named a tier which their policy does not have.", "policy"),
		abandoned: counter("ratelimit_abandoned_requests_total",
			"Requests that were held for their turn and gave up.", "policy"),
		bans: counter("ratelimit_bans_total",
			"Keys that a policy has banned for their denials.", "policy"),
		settlements: counter("ratelimit_settlements_total",
			"What requests were charged or given back late, by whether that could be done.", "policy", "result"),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ratelimit_settlement_lag_seconds", Help: "Time from when a settlement was due until it was made.",
			Buckets: slices.Clone(buckets), NativeHistogramBucketFactor: nativeFactor,
			NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
		}),
		divergences: counter("ratelimit_candidate_divergences_total",
			"Requests that a policy's candidate would have decided otherwise.", "policy", "live", "candidate"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ratelimit_decision_duration_seconds", Help: "Time that decisions took, by who made them.",
			Buckets: slices.Clone(buckets), NativeHistogramBucketFactor: nativeFactor,
			NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
		}, []string{"source"}),
		policies: make(map[string]*policySeries),
		limiters: make(map[string]statsLimiter),
	}
	m.series.Store(&map[seriesName]*series{})
	for source := range m.bySource {
		m.bySource[source] = m.durations.WithLabelValues(algorithms.Source(source).String())
	}
	return m
}

// A collector is the Metrics as a registry sees them. One collector is registered
// whole or not at all.
type collector Metrics

// vectors are the collectors that the registry sees through this one.
func (c *collector) vectors() []prometheus.Collector {
	return []prometheus.Collector{
		c.requests, c.unknownTier, c.abandoned, c.bans, c.settlements, c.lag, c.divergences, c.durations,
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range c.vectors() {
		v.Describe(ch)
	}
	ch <- distinctKeys
	ch <- topOffender
	ch <- batchSize
	ch <- redisErrors
	for i := range figures {
		ch <- figures[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.vectors() {
		v.Collect(ch)
	}
	m := (*Metrics)(c)
	m.collectPolicies(ch)
	m.collectLimiters(ch)
}
