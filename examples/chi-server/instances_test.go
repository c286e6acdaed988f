// The test of the alerts with two instances that share a Redis.

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A pair is two instances of the server with one Redis.
type pair struct {
	redis  *redistest.Server
	a, b   *server
	rounds int
	pace   *time.Ticker // no client is denied 30 times per second
}

func startPair(t *testing.T) *pair {
	t.Helper()
	redis := redistest.Start(t)
	start := func() *server { // a Redis that is gone or that refuses answers at once, and a busy machine is no fault
		return startWith(t, time.Second, "-redis", "redis://"+redis.Addr(), "-trusted-proxies", "127.0.0.0/8")
	}
	pace := time.NewTicker(400 * time.Millisecond)
	t.Cleanup(pace.Stop)
	return &pair{redis: redis, a: start(), b: start(), pace: pace}
}

// permit gives the servers their right to run scripts, or takes it away.
func (p *pair) permit(t *testing.T, sign string) {
	t.Helper()
	if err := p.redis.Client().Do(t.Context(), "acl", "setuser", "default", sign+"evalsha", sign+"eval").Err(); err != nil {
		t.Fatal(err)
	}
}

// round is ordinary load: three greedy clients, one that guesses passwords, and many clients within their limits.
func (p *pair) round(t *testing.T) {
	t.Helper()
	p.rounds++
	<-p.pace.C
	for _, s := range []*server{p.a, p.b} {
		send := func(line, addr string) { s.send(t, line, wrong, "X-Forwarded-For", addr) }
		for greedy := range 3 {
			addr := fmt.Sprintf("192.0.2.%d", greedy)
			for range 4 {
				send("GET /v1/orders/1", addr)
				send("GET /v1/search?deep=1", addr)
				send("GET /v1/reports", addr)
			}
		}
		send("POST /v1/login", "192.0.2.99")
		send("GET /v1/orders/1", fmt.Sprintf("10.0.0.%d", p.rounds%regulars))
		s.charge(t)
	}
}

// TestTwoInstances: under ordinary load no alert fires. What happened before the first scrape counts. When Redis goes, the
// alerts name both instances, and the policy that fails closed.
func TestTwoInstances(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	pair := startPair(t)
	pair.permit(t, "-")
	pair.a.chargeUntil(t, odd, 1)
	pair.a.chargeUntil(t, gone, 1)
	pair.permit(t, "+")
	pair.a.chargeUntil(t, back, 1)
	for range 30 {
		pair.b.send(t, "GET /v1/orders/1", "", "X-Forwarded-For", "192.0.2.200")
	}

	p := startScraper(t, []scene{{name: "a", url: pair.a.url}, {name: "b", url: pair.b.url}})
	before := []string{"RateLimitMisconfigured a", "RateLimitUndecided charges-merchant", "RateLimitUndecided charges-capacity"}
	p.until(t, func() (missing string) {
		if got := p.fired(t); got[before[0]] == 0 {
			return fmt.Sprintf("the alert of an error before the first scrape, only %v", got)
		}
		if got := p.value(t, `job_instance_policy:ratelimit_denied:rate5m{instance="b", policy="orders"} > bool 0`); got != "1" {
			return fmt.Sprintf("the denials before the first scrape, but %q", got)
		}
		return ""
	})
	p.until(t, func() (missing string) { // of two scrapes; nothing was sent meanwhile
		if got := p.value(t, `increase(ratelimit_requests_total{instance="b", policy="orders", outcome="denied"}[30s])`); got != "0" {
			return fmt.Sprintf("an increase of 0, but %q: this test needs denials before the first scrape only", got)
		}
		return ""
	})

	for _, policy := range []string{"orders", "search", "reports", "login"} {
		p.until(t, func() (missing string) {
			pair.round(t)
			const longer = 10 // evaluations than any alert waits
			high := fmt.Sprintf(`count_over_time((job_policy:ratelimit_denied:ratio_rate5m{policy=%q} > 0.05)[1h:1s]) > bool %d`, policy, longer)
			if p.value(t, high) != "1" {
				return "so many denials of " + policy + " that a low threshold would fire"
			}
			return ""
		})
	}
	p.wantOnly(t, "under ordinary load", before...) // b has sent no script when Redis was misconfigured, and a has not decided

	pair.redis.Kill()
	gone := []string{"RateLimitDegraded a", "RateLimitDegraded b", "RateLimitFailedClosed login", "RateLimitFailedClosed login-account", "RateLimitFailedClosed login-capacity"}
	p.until(t, func() (missing string) {
		pair.round(t)
		fired := p.fired(t)
		silent := slices.DeleteFunc(slices.Clone(gone), func(alert string) bool { return fired[alert] > 0 })
		return strings.Join(silent, ", ")
	})
	p.wantOnly(t, "without Redis", slices.Concat(before, gone)...)
	ratio := `job_policy:ratelimit_denied:ratio_rate5m{policy="login"} > bool 0.5`
	if got := p.value(t, ratio); got != "1" {
		t.Errorf("%s: got %q, want refused logins to be denied", ratio, got)
	}

	pair.redis.Restart()
	p.until(t, func() (missing string) {
		pair.round(t)
		if still := p.query(t, `ALERTS{alertname="RateLimitDegraded"}`); len(still) > 0 {
			return fmt.Sprintf("an end of %v", still)
		}
		return ""
	})
}

// wantOnly wants no other alert to have fired.
func (p *scraper) wantOnly(t *testing.T, when string, may ...string) {
	t.Helper()
	for alert := range maps.Keys(p.fired(t)) {
		if !slices.Contains(may, alert) {
			t.Errorf("%s: got %s, want it silent", when, alert)
		}
	}
}
