// Package otelmetrics, which a minor version may change, exports the metrics of package prommetrics as OpenTelemetry
// instruments, and describes decisions on the spans of requests. It is a module of its
// own, so that no other program downloads OpenTelemetry:
//
//	go get github.com/penstock-go/penstock/middleware/otelmetrics
//
//	metrics := ratelimit.Must(otelmetrics.New(meterProvider, nil))
//	opts := &ratelimit.Options{Observers: []ratelimit.Observer{metrics}}
//	limited := ratelimit.Must(ratelimit.New(limiter, opts, policies...))
//
// # Instruments
//
// Package prommetrics explains each metric. An instrument has the metric's name with a
// dot after ratelimit, and without the suffixes total and seconds: ratelimit_requests_total
// becomes ratelimit.requests, and ratelimit_decision_duration_seconds becomes
// ratelimit.decision_duration with the unit s. Counts have units such as {request}.
// A label becomes an attribute with the prefix ratelimit: policy becomes ratelimit.policy.
// If an exporter writes for Prometheus, it restores the suffixes. With this line, also the labels
// have the names that the alerts and the dashboards of examples/chi-server/observability use:
//
//	metric_relabel_configs: [{regex: "ratelimit_(.+)", action: labelmap}, {regex: "ratelimit_.+", action: labeldrop}]
//
// Two metrics differ, because OpenTelemetry has no instrument for a histogram that is
// collected: each becomes two counters. ratelimit.redis_batched_checks divided by
// ratelimit.redis_batches is the mean number of checks in a script, and ratelimit.redis_round_trip
// divided by ratelimit.redis_round_trips is the mean round trip.
//
// A request counts in memory that is set aside for its policy, as in prommetrics. The
// instruments read these counts when a reader collects them. Only the two histograms of durations
// are recorded during the request.
//
// # Spans
//
// The Middleware's Handler adds to the span of the request's context, if it records:
//
//	ratelimit.allowed            whether the request may be served
//	ratelimit.source             shared, local or undecided
//	ratelimit.retry_after        seconds that a denied client waits, rounded up; missing if waiting cannot help
//	ratelimit.outcome.POLICY     the ratelimit.Outcome of a policy, e.g. denied
//	ratelimit.remaining.POLICY   units that remain of a policy's limit, if a limiter decided
//
// Spans have no key of a client. Start the span outside the Middleware, e.g. with
// package otelhttp.
package otelmetrics
