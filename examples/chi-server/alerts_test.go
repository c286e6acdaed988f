// The test of the alerts and the dashboard in a real Prometheus.

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
)

// wantAlerts are the alerts of the scenes. No other alert may fire.
var wantAlerts = []string{
	// Not orders, login and unmatched, whose denials are of one client.
	"RateLimitDenials search",
	"RateLimitCapacity exports",
	// Not search, which denies all clients alike. Not exports, which counts all clients together. Not unmatched, which denies
	// few requests.
	"RateLimitOneOffender orders",
	"RateLimitOneOffender login",
	"RateLimitFailedClosed login", // of refused; one decision has three policies
	"RateLimitFailedClosed login-account",
	"RateLimitFailedClosed login-capacity",
	"RateLimitDegraded refused",
	"RateLimitMisconfigured refused",    // not flapping, which resolves itself
	"RateLimitBreakerFlaps flapping",    // not refused, whose circuit opens once
	"RateLimitCandidateDiverges strict", // not alike, in one request of a hundred
	"RateLimitUndecided mail",           // not the policies of refused, because RateLimitDegraded fires there
	"RateLimitFinding PS201",            // of evicting
	"RateLimitLimitsDiffer uneven",
}

// mayAlert may fire on a busy machine, where an outage lasts longer than a second, and where RateLimitDegraded comes late.
var mayAlert = []string{"RateLimitDegraded flapping", "RateLimitUndecided charges-merchant", "RateLimitUndecided charges-capacity"}

// TestPrometheus: in a Prometheus that scrapes servers under load, each alert fires for its own scene only.
func TestPrometheus(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	wantEveryAlert(t)
	scenes := []scene{crowd(t), healthy(t), refused(t), flapping(t), trial(t), failing(t), evicting(t)}
	p := startScraper(t, scenes,
		"> 100\n", fmt.Sprintf("> %d\n", manyDenials), ") > 30\n", fmt.Sprintf(") > %d\n", manyDenials))
	p.until(t, func() (missing string) {
		if up := p.value(t, "sum(up)"); up != strconv.Itoa(len(scenes)) {
			return "a scene of the scraped instances, which are " + up
		}
		return ""
	})
	if got := p.fired(t); len(got) != 0 {
		t.Errorf("got the alerts %v without load, want none", got)
	}
	pace := time.NewTicker(150 * time.Millisecond) // the healthy scene stays below its limit of 5 000 a minute
	defer pace.Stop()
	p.until(t, func() (missing string) {
		<-pace.C
		for _, s := range scenes {
			s.round(t)
		}
		return p.missing(t)
	})
	for alert := range p.fired(t) {
		if !slices.Contains(wantAlerts, alert) && !slices.Contains(mayAlert, alert) {
			t.Errorf("got %s, want it silent", alert)
		}
	}
	wantScenes(t, p)
	wantPanels(t, p)
}

// wantEveryAlert wants a scene for each alert.
func wantEveryAlert(t *testing.T) {
	t.Helper()
	for _, alert := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		if !slices.ContainsFunc(wantAlerts, func(want string) bool { return strings.HasPrefix(want, alert[1]+" ") }) {
			t.Errorf("no scene makes %s fire", alert[1])
		}
	}
}

// missing returns the alerts that have not fired for several evaluations. By then, all other alerts had time to fire.
func (p *scraper) missing(t *testing.T) string {
	t.Helper()
	const evaluations = 5
	fired := p.fired(t)
	silent := slices.DeleteFunc(slices.Clone(wantAlerts), func(want string) bool { return fired[want] >= evaluations })
	if len(silent) == 0 {
		return ""
	}
	return strings.Join(silent, ", ")
}

// wantScenes wants the figures that could have made the silent alerts fire.
func wantScenes(t *testing.T, p *scraper) {
	t.Helper()
	tests := map[string]string{
		`ratelimit_top_offender_denial_ratio{policy="orders"}`:                             "1",
		`ratelimit_top_offender_denial_ratio{policy="search"} < bool 0.1`:                  "1",
		`ratelimit_top_offender_denial_ratio{policy="unmatched"}`:                          "1",
		`ratelimit_top_offender_denial_ratio{policy="login"}`:                              "1",
		`ratelimit_breaker_trips_total{instance="refused"}`:                                "1",
		`ratelimit_breaker_trips_total{instance="healthy"}`:                                "0",
		`ratelimit_redis_errors_total{reason="unavailable", instance="flapping"} > bool 0`: "1",
		`ratelimit_redis_checks_total{instance="healthy"} > bool 0`:                        "1",
		`ratelimit_candidate_divergences_total{policy="alike", live="allowed"} > bool 0`:   "1",
		// Of native histograms:
		`histogram_quantile(0.5, ratelimit_decision_duration_seconds{source="local", instance="crowd"}) > bool 0`: "1",
	}
	for _, query := range slices.Sorted(maps.Keys(tests)) {
		p.until(t, func() (missing string) { // the last round may not have been scraped
			if got := p.value(t, query); got != tests[query] {
				return fmt.Sprintf("%s: got %q, want %q", query, got, tests[query])
			}
			return ""
		})
	}
}
