// The counts of prommetrics as instruments.
//
// The counts stand in a registry of their own, so each has one definition and the numbers of both
// packages agree. A reader collects them through callbacks. The SDK accepts observations only of
// the instruments that a callback was registered with, so metrics that the registry has gained get a
// callback of their own. No callback is ever replaced: a reader of differences that misses one
// observation would report the whole count again.

package otelmetrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const scope = "github.com/penstock-go/penstock/middleware/otelmetrics"

// instruments are observable instruments over the metrics of a registry.
type instruments struct {
	meter    metric.Meter
	registry *prometheus.Registry

	mu    sync.Mutex // guards known
	known map[string]bool
}

func newInstruments(provider metric.MeterProvider, registry *prometheus.Registry) (*instruments, error) {
	if provider == nil {
		return nil, errors.New("ratelimit: the meter provider of the metrics is nil: want e.g. otel.GetMeterProvider()")
	}
	return &instruments{meter: provider.Meter(scope), registry: registry, known: make(map[string]bool)}, nil
}

// histogram returns an instrument with the name and the buckets of a histogram in the registry.
func (in *instruments) histogram(family string) (metric.Float64Histogram, error) {
	families, err := in.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("ratelimit: metrics: %w", err)
	}
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		var bounds []float64
		for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		name, unit := nameOf(family)
		return in.meter.Float64Histogram(name, metric.WithDescription(f.GetHelp()), metric.WithUnit(unit), metric.WithExplicitBucketBoundaries(bounds...))
	}
	return nil, fmt.Errorf("ratelimit: metrics: there is no histogram %s", family)
}

func nameOf(family string) (name, unit string) {
	name = strings.TrimSuffix(strings.Replace(family, "_", ".", 1), "_total")
	if seconds, found := strings.CutSuffix(name, "_seconds"); found {
		return seconds, "s"
	}
	last := name[strings.LastIndexAny(name, "._")+1:]
	if unit, found := units[last]; found {
		return name, unit
	}
	return name, "{" + strings.TrimSuffix(last, "s") + "}" // requests are {request}
}

// units are the units of instruments whose names do not end with what they count.
var units = map[string]string{
	"ratio": "1", "decisions": "{request}", "limit": "{request}", "up": "{request}", "retries": "{request}", "hits": "{call}", "open": "{circuit}",
}

// update makes instruments for the metrics that the registry has gained. Errors go to OpenTelemetry's
// handler, because no caller waits for them.
func (in *instruments) update() {
	in.mu.Lock()
	defer in.mu.Unlock()
	families, err := in.registry.Gather()
	if err != nil {
		otel.Handle(fmt.Errorf("ratelimit: metrics: %w", err))
	}
	added := make(map[string]metric.Float64Observable)
	var all []metric.Observable
	for _, f := range families {
		for name, kind := range namesOf(f) {
			if in.known[name] {
				continue
			}
			in.known[name] = true
			instrument, err := in.observable(name, f.GetHelp(), kind)
			if err != nil {
				otel.Handle(fmt.Errorf("ratelimit: metric %s: %w", name, err))
				continue
			}
			added[name], all = instrument, append(all, instrument)
		}
	}
	if len(all) == 0 {
		return
	}
	if _, err := in.meter.RegisterCallback(in.observer(added), all...); err != nil {
		otel.Handle(fmt.Errorf("ratelimit: metrics: %w", err))
	}
}

func (in *instruments) observable(family, help string, kind dto.MetricType) (metric.Float64Observable, error) {
	name, unit := nameOf(family)
	if kind == dto.MetricType_COUNTER {
		return in.meter.Float64ObservableCounter(name, metric.WithDescription(help), metric.WithUnit(unit))
	}
	return in.meter.Float64ObservableGauge(name, metric.WithDescription(help), metric.WithUnit(unit))
}

// sums are the two counters, of the number and of the sum, that stand for a histogram that is collected.
var sums = map[string][2]string{
	"ratelimit_redis_batch_checks":       {"ratelimit_redis_batches_total", "ratelimit_redis_batched_checks_total"},
	"ratelimit_redis_round_trip_seconds": {"ratelimit_redis_round_trips_total", "ratelimit_redis_round_trip_seconds_total"},
}

// namesOf returns the names and kinds of the metrics that are observed for a family; none for a
// histogram that Observe records.
func namesOf(f *dto.MetricFamily) map[string]dto.MetricType {
	if two, found := sums[f.GetName()]; found {
		return map[string]dto.MetricType{two[0]: dto.MetricType_COUNTER, two[1]: dto.MetricType_COUNTER}
	}
	if f.GetType() == dto.MetricType_HISTOGRAM {
		return nil
	}
	return map[string]dto.MetricType{f.GetName(): f.GetType()}
}

// observer returns the callback that reports the metrics of some names.
func (in *instruments) observer(byName map[string]metric.Float64Observable) metric.Callback {
	return func(_ context.Context, o metric.Observer) error {
		families, err := in.registry.Gather()
		for _, f := range families {
			for _, m := range f.GetMetric() {
				attributes := metric.WithAttributes(attributesOf(m)...)
				for name := range namesOf(f) {
					if instrument := byName[name]; instrument != nil {
						o.ObserveFloat64(instrument, valueOf(name, f.GetName(), m), attributes)
					}
				}
			}
		}
		return err
	}
}

func attributesOf(m *dto.Metric) []attribute.KeyValue {
	var all []attribute.KeyValue
	for _, label := range m.GetLabel() {
		all = append(all, attribute.String("ratelimit."+label.GetName(), label.GetValue()))
	}
	return all
}

func valueOf(name, family string, m *dto.Metric) float64 {
	if two, found := sums[family]; found && name == two[0] {
		return float64(m.GetHistogram().GetSampleCount())
	} else if found {
		return m.GetHistogram().GetSampleSum()
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is nil, and has the value 0
}
