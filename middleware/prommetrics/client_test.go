// Tests of the metrics of clients.

package prommetrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestClientMetrics: requests, retries, waits and giving up are counted by the name of the
// Transport, and all series exist before.
func TestClientMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m, err := prommetrics.NewClient(reg)
		if err != nil {
			t.Fatal(err)
		}
		var failure error
		denials := 2
		transport := ratelimit.Must(client.NewTransport(roundTripper(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if denials > 0 {
				denials--
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return w.Result(), failure
		}), &client.Options{
			Name: "github", Attempts: 3, Observers: []client.Observer{m},
			Limiter: algorithms.NewMemory(nil), Limit: algorithms.TokenBucket(1, 10*time.Second),
		}))
		_, series := gather(t, reg)
		send := func(method string) { // each request of the test ends
			resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, "http://api.example/", nil))
			if err == nil {
				_ = resp.Body.Close() // a recorder's body does not fail
			}
		}
		send(http.MethodGet) // denied twice
		denials = 1
		send(http.MethodPost) // not repeatable
		denials = 9
		send(http.MethodGet) // out of attempts
		denials, failure = 0, context.Canceled
		send(http.MethodGet)
		values, after := gather(t, reg)
		if after != series {
			t.Errorf("got %d series, %d before the first request", after, series)
		}
		wants(t, values, map[string]float64{
			"ratelimit_client_requests_total{client=github,outcome=answered}": 1,
			"ratelimit_client_requests_total{client=github,outcome=denied}":   6,
			"ratelimit_client_requests_total{client=github,outcome=failed}":   1,
			"ratelimit_client_retries_total{client=github}":                   4,
			"ratelimit_client_waits_total{client=github,reason=retry}":        4,
			"ratelimit_client_waits_total{client=github,reason=limit}":        7,
			"ratelimit_client_waits_total{client=github,reason=pace}":         1, // for the stated wait of the last attempt; another method may try
			"ratelimit_client_given_up_total{client=github,reason=request}":   1,
			"ratelimit_client_given_up_total{client=github,reason=attempts}":  1,
			"ratelimit_client_given_up_total{client=github,reason=wait}":      0,
			"ratelimit_client_given_up_total{client=github,reason=final}":     0,
		})
		if got := values["ratelimit_client_wait_seconds_total{client=github,reason=retry}"]; got < 8 || got > 12 {
			t.Errorf("got %v s of waits to retry, want 4 times 2 s and the random part", got)
		}
	})
}

func TestNewClient(t *testing.T) {
	if _, err := prommetrics.NewClient(nil); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("got %v, want an error with the prefix ratelimit", err)
	}
	reg := prometheus.NewRegistry()
	newMetrics(t, reg) // beside those of the server
	first, err := prommetrics.NewClient(reg)
	again, alsoErr := prommetrics.NewClient(reg)
	if err != nil || alsoErr != nil || first != again {
		t.Errorf("got %p, %v and %p, %v, want the same", first, err, again, alsoErr)
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "ratelimit_client_waits_total", Help: "Waits of another program."}))
	if _, err := prommetrics.NewClient(taken); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("got %v, want that the name is taken", err)
	}
}

// One line counts what a client sends, and how long it waits.
func ExampleNewClient() {
	registry := prometheus.NewRegistry() // a service uses prometheus.DefaultRegisterer
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()

	transport := ratelimit.Must(client.NewTransport(nil, &client.Options{
		Name: "billing", Observers: []client.Observer{ratelimit.Must(prommetrics.NewClient(registry))},
	}))
	resp, err := (&http.Client{Transport: transport}).Get(api.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close() // it is not read

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "ratelimit_client_requests_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// ratelimit_client_requests_total{client="billing",outcome="answered"} 1
	// ratelimit_client_requests_total{client="billing",outcome="denied"} 0
	// ratelimit_client_requests_total{client="billing",outcome="failed"} 0
}
