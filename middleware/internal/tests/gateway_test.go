package tests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

// proxyTo returns a ReverseProxy before a server with the handler.
func proxyTo(t *testing.T, h http.Handler) *httputil.ReverseProxy {
	t.Helper()
	upstream := httptest.NewServer(h)
	t.Cleanup(upstream.Close)
	u, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(u)
}

// TestReverseProxy: between a gateway's limiter and a ReverseProxy, nothing is needed for one line of each field.
func TestReverseProxy(t *testing.T) {
	for _, d := range []headers.Dialect{0, headers.XRateLimit, headers.Draft | headers.SeparateFields | headers.XRateLimit} {
		for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
			proxy := proxyTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
					w.Header().Set(prefix+"Limit", "60")
					w.Header().Set(prefix+"Remaining", "0")
					w.Header().Set(prefix+"Reset", "42")
				}
				w.WriteHeader(status)
			}))
			m := newMiddleware(t, newMemory(t), &ratelimit.Options{Headers: d}, byIP("api", algorithms.TokenBucket(100, time.Minute)))
			w := record(m.Handler(proxy), from("192.0.2.1"))
			for _, field := range []string{"Limit", "Remaining", "Reset"} {
				for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
					want := map[string]string{"Limit": "60", "Remaining": "0", "Reset": "42"}[field]
					if got := w.Header().Values(prefix + field); len(got) != 1 || got[0] != want {
						t.Errorf("%v, %d: %s%s: got %q, want %s", d, status, prefix, field, got, want)
					}
				}
			}
			if got := w.Header().Values("RateLimit"); len(got) != 0 {
				t.Errorf("%v, %d: got RateLimit %q beside a nearer limit in another version, want none", d, status, got)
			}
		}
	}
}

// TestReverseProxyStack: of a gateway and its upstream, both with this package, the nearer limit is on each response.
func TestReverseProxyStack(t *testing.T) {
	up := newMiddleware(t, newStill(t), nil, byIP("up", algorithms.TokenBucket(3, time.Hour)))
	gateway := newMiddleware(t, newStill(t), nil, byIP("gw", algorithms.TokenBucket(100, time.Minute)))
	h := gateway.Handler(proxyTo(t, up.Handler(ok)))
	for _, want := range []string{`"up";r=2;t=2400`, `"up";r=1;t=1200`, `"up";r=0;t=1200`, `"up";r=0;t=1200`} {
		w := record(h, from("192.0.2.1"))
		if got := w.Header()["Ratelimit"]; len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.Header()["Ratelimit-Policy"]; len(got) != 1 || got[0] != `"up";q=3;w=3600` {
			t.Errorf("got policies %q, want the upstream's", got)
		}
		if w.Code == http.StatusTooManyRequests && retryAfter(t, w.Header()) != 1200 {
			t.Errorf("got %v, want the Retry-After that equals t", fmt.Sprint(w.Header()))
		}
	}
}
