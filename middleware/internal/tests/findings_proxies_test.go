package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// forwarded returns the request of client i, which reaches the service from peer.
func forwarded(i int, peer, header, format string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	if header != "" {
		r.Header.Set(header, fmt.Sprintf(format, fmt.Sprintf("198.51.%d.%d", i/250%250, i%250)))
	}
	return r
}

var balancers = []netip.Prefix{netip.MustParsePrefix("10.0.2.0/24")}

// TestStaleProxies: each setting that no longer describes the proxies is found within 1 000 requests, also when the
// clients have API keys and when the proxies are exempt.
func TestStaleProxies(t *testing.T) {
	user := keyfunc.APIKey("X-Key", func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: "42"}, nil })
	for name, tt := range map[string]struct {
		o                    keyfunc.IPOptions
		peer, header, format string
		want                 string
	}{
		"Trusted names another subnet": {keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}}, "10.0.2.7:4000", "X-Forwarded-For", "%s", "PS113"},
		"a Unix socket":                {keyfunc.IPOptions{Trusted: balancers}, "@", "X-Forwarded-For", "%s", "PS113"},
		"another header":               {keyfunc.IPOptions{Trusted: balancers, Header: "X-Real-IP"}, "10.0.2.7:4000", "X-Forwarded-For", "%s", "PS113"},
		"one hop too many":             {keyfunc.IPOptions{Hops: 2}, "10.0.2.7:4000", "X-Forwarded-For", "%s", "PS113"},
		"an unreadable entry":          {keyfunc.IPOptions{Trusted: balancers}, "10.0.2.7:4000", "X-Forwarded-For", "for=%s", "PS113"},
		"one hop too few":              {keyfunc.IPOptions{Hops: 1}, "10.0.2.7:4000", "X-Forwarded-For", "%s,203.0.113.2", "PS115"},
		"a balancer is not trusted":    {keyfunc.IPOptions{Trusted: balancers}, "10.0.2.7:4000", "X-Forwarded-For", "%s:99, 203.0.113.2", "PS115"},
		"the same in Forwarded":        {keyfunc.IPOptions{Trusted: balancers, Header: "Forwarded"}, "10.0.2.7:4000", "Forwarded", "for=%s, for=203.0.113.2", "PS115"},
	} {
		for of, key := range map[string]keyfunc.Key{"address": {}, "user": user, "own": keyfunc.IP(&tt.o)} {
			for _, exempt := range [][]netip.Prefix{nil, balancers} {
				o := &ratelimit.Options{ClientIP: keyfunc.IP(&tt.o), Exempt: exempt, Logger: quiet}
				m := newMiddleware(t, newMemory(t), o, ratelimit.Policy{Name: "p", Key: key, Limit: algorithms.TokenBucket(100, time.Hour)})
				h := m.Handler(ok)
				for i := range 1000 {
					h.ServeHTTP(httptest.NewRecorder(), forwarded(i, tt.peer, tt.header, tt.format))
				}
				if got, want := findings(m), tt.want+" p"; got != want {
					t.Errorf("%s, by %s, exempt %v: got %q, want %q", name, of, exempt, got, want)
				}
			}
		}
	}
}

// TestProxiesThatSetNoHeader: clients send many requests. A health check is the same one again.
func TestProxiesThatSetNoHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		path func(i int) string
		want string
	}{
		"clients":       {func(i int) string { return fmt.Sprint("/orders/", i) }, "PS113 p"},
		"health checks": {func(i int) string { return []string{"/healthz", "/", "/readyz"}[i%3] }, ""},
	} {
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{ClientIP: keyfunc.IP(&keyfunc.IPOptions{Trusted: balancers}), Logger: quiet}, byIP("p", hourly))
		h := m.Handler(ok)
		for i := range 1000 {
			r := httptest.NewRequest(http.MethodGet, tt.path(i), nil)
			r.RemoteAddr = "10.0.2.7:4000"
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if got := findings(m); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestRightProxies: right settings have no finding in 100 000 requests, although a third of them have forged entries,
// clients come past the proxies, and proxies check the health.
func TestRightProxies(t *testing.T) {
	requests := 100_000
	if raceEnabled {
		requests = 10_000
	}
	for name, tt := range map[string]struct {
		o      keyfunc.IPOptions
		peer   string
		header string
		after  string // what the proxies append
	}{
		"Trusted":          {keyfunc.IPOptions{Trusted: balancers}, "10.0.2.7:4000", "X-Forwarded-For", "%s"},
		"a chain":          {keyfunc.IPOptions{Trusted: balancers}, "10.0.2.7:4000", "X-Forwarded-For", "%s, 10.0.2.9"},
		"one address":      {keyfunc.IPOptions{Trusted: balancers, Header: "X-Real-IP"}, "10.0.2.7:4000", "X-Real-IP", "%s"},
		"Forwarded":        {keyfunc.IPOptions{Trusted: balancers, Header: "Forwarded"}, "10.0.2.7:4000", "Forwarded", `for="%s:4711";host="a,b"`},
		"Hops":             {keyfunc.IPOptions{Hops: 1}, "10.0.2.7:4000", "X-Forwarded-For", "%s"},
		"Google's":         {keyfunc.IPOptions{Hops: 2}, "35.191.3.4:4711", "X-Forwarded-For", "%s, 203.0.113.2"},
		"a Unix socket":    {keyfunc.IPOptions{TrustUnix: true}, "@", "X-Forwarded-For", "%s"},
		"a CDN before one": {keyfunc.IPOptions{Trusted: append(balancers, netip.MustParsePrefix("203.0.113.0/24"))}, "10.0.2.7:4000", "X-Forwarded-For", "%s, 203.0.113.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 1))
			m := newMiddleware(t, newMemory(t), &ratelimit.Options{ClientIP: keyfunc.IP(&tt.o), Logger: quiet}, byIP("p", algorithms.TokenBucket(10, time.Minute)))
			h, w, r := m.Handler(ok), &sink{h: make(http.Header)}, httptest.NewRequest(http.MethodGet, "/", nil)
			header := http.CanonicalHeaderKey(tt.header)
			for i := range requests {
				client := fmt.Sprintf("198.51.%d.%d", random.IntN(20), random.IntN(250))
				r.RemoteAddr, r.Header[header] = tt.peer, []string{fmt.Sprintf(tt.after, client)}
				switch n := random.IntN(100); {
				case n < 33 && tt.header != "X-Real-IP":
					r.Header[header] = []string{fmt.Sprint("for=198.51.100.", i%250), r.Header[header][0]}
				case n < 50:
					delete(r.Header, header) // a health check
				case n < 55 && tt.o.Hops == 0:
					r.RemoteAddr = "192.0.2.1:99" // past the proxies
				}
				clear(w.h)
				h.ServeHTTP(w, r)
				if i%1000 == 0 && findings(m) != "" {
					t.Fatalf("got %q after %d requests", findings(m), i)
				}
			}
			if got := findings(m); got != "" {
				t.Errorf("got %q, want none", got)
			}
		})
	}
}

// TestStaleProxiesWithinAMinute: a service with twenty requests per second notices a moved balancer, and that its
// address was corrected.
func TestStaleProxiesWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{ClientIP: keyfunc.IP(&keyfunc.IPOptions{Trusted: balancers}), Logger: quiet}, byIP("p", hourly))
		h, i := m.Handler(ok), 0
		serve := func(peer string, until string, most time.Duration) {
			t.Helper()
			for start := time.Now(); findings(m) != until; i++ {
				h.ServeHTTP(httptest.NewRecorder(), forwarded(i, peer, "X-Forwarded-For", "%s"))
				if time.Sleep(time.Second / 20); time.Since(start) > most {
					t.Fatalf("got %q after %v, want %q", findings(m), most, until)
				}
			}
		}
		for range 2000 {
			h.ServeHTTP(httptest.NewRecorder(), forwarded(i%500, "10.0.2.7:4000", "X-Forwarded-For", "%s"))
			i++
		}
		if got := findings(m); got != "" {
			t.Fatalf("got %q, want none", got)
		}
		serve("10.0.3.7:4000", "PS113 p", time.Minute)
		serve("10.0.2.7:4000", "", time.Minute)
	})
}
