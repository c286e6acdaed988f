package keyfunc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// benchmark measures Append for requests in the state that serve brings them
// into: it calls its argument with the request as the middleware sees it.
func benchmark(b *testing.B, key Key, r *http.Request, serve func(func(*http.Request), *http.Request)) {
	b.Helper()
	serve(func(r *http.Request) {
		dst := make([]byte, 0, 256)
		q := &Request{Request: r}
		if _, _, err := key.Append(dst, q); err != nil {
			b.Fatalf("got %v, want a key", err)
		}
		b.ReportAllocs()
		for b.Loop() {
			*q = Request{Request: r} // as a middleware does
			_, _, _ = key.Append(dst, q)
		}
	}, r)
}

func asItIs(f func(*http.Request), r *http.Request) { f(r) }

func BenchmarkIP(b *testing.B) {
	trusted := IP(&IPOptions{Trusted: proxies})
	forwarded := IP(&IPOptions{Trusted: proxies, Header: "Forwarded"})
	chain := []string{"6.6.6.6, 1.2.3.4, 10.0.0.2"}
	long := []string{strings.Repeat("6.6.6.6, ", 1000) + "1.2.3.4, 10.0.0.2"}
	for _, bb := range []struct {
		name string
		key  Key
		r    *http.Request
	}{
		{"direct", IP(nil), forwardedRequest("1.2.3.4:80", "", nil)},
		{"direct-v6", IP(nil), forwardedRequest("[2001:db8:1:2::1]:80", "", nil)},
		{"xff", trusted, forwardedRequest(proxy, "X-Forwarded-For", chain)},
		{"xff-1000", trusted, forwardedRequest(proxy, "X-Forwarded-For", long)},
		{"forwarded", forwarded, forwardedRequest(proxy, "Forwarded", []string{`for=6.6.6.6, for="1.2.3.4:80";proto=https`})},
	} {
		b.Run(bb.name, func(b *testing.B) { benchmark(b, bb.key, bb.r, asItIs) })
	}
}

func BenchmarkAPIKey(b *testing.B) {
	r := request("X-API-Key", "sk_live_0123456789abcdef", "Authorization", "Bearer sk_live_0123456789abcdef")
	for _, header := range []string{"X-API-Key", "Authorization"} {
		b.Run(header, func(b *testing.B) { benchmark(b, APIKey(header, anyKey), r, asItIs) })
	}
}

// BenchmarkAPIKeyAgain measures the second policy of a request.
func BenchmarkAPIKeyAgain(b *testing.B) {
	key, dst := APIKey("X-API-Key", anyKey), make([]byte, 0, 256)
	q := &Request{Request: request("X-API-Key", "sk_live_0123456789abcdef")}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = key.Append(dst, q)
	}
}

func BenchmarkUser(b *testing.B) {
	r := request()
	r = r.WithContext(context.WithValue(r.Context(), ctxKey{}, Identity{ID: "42", Tier: "gold"}))
	benchmark(b, User(func(ctx context.Context) (Identity, bool) {
		id, ok := ctx.Value(ctxKey{}).(Identity)
		return id, ok
	}), r, asItIs)
}

func BenchmarkClientIP(b *testing.B) {
	key, dst := IP(nil), make([]byte, 0, 256)
	for _, bb := range []struct {
		name     string
		clientIP Key
	}{{"peer", Peer()}, {"trusted", IP(&IPOptions{Trusted: proxies})}, {"hops", IP(&IPOptions{Hops: 2})}} {
		b.Run(bb.name, func(b *testing.B) {
			q := &Request{
				Request:  forwardedRequest(proxy, "X-Forwarded-For", []string{"6.6.6.6, 1.2.3.4, 10.0.0.2"}),
				ClientIP: bb.clientIP,
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = key.Append(dst, q)
			}
		})
	}
}

func BenchmarkHeader(b *testing.B) {
	benchmark(b, Header("X-Tenant"), request("X-Tenant", "acme"), asItIs)
}

func BenchmarkMissing(b *testing.B) {
	key := FirstOf(APIKey("X-API-Key", anyKey), Header("X-Tenant"))
	q := &Request{Request: request()}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = key.Append(nil, q)
	}
}

// inChi serves r with f as a middleware of the root, a sub-router or a route.
func inChi(where string) func(func(*http.Request), *http.Request) {
	return func(f func(*http.Request), r *http.Request) {
		at := func(here string) func(http.Handler) http.Handler {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if here == where {
						f(r)
					}
					next.ServeHTTP(w, r)
				})
			}
		}
		root := chi.NewRouter()
		root.Use(at("use"))
		root.Route("/v1", func(r chi.Router) {
			r.Use(at("sub-use"))
			r.With(at("with")).Get("/orders/{id}", ok)
		})
		root.ServeHTTP(httptest.NewRecorder(), r)
	}
}

func BenchmarkRoute(b *testing.B) {
	r := httptest.NewRequest(http.MethodGet, "/v1/orders/1", nil)
	for _, where := range []string{"use", "sub-use", "with"} {
		b.Run("chi-"+where, func(b *testing.B) { benchmark(b, Route(), r, inChi(where)) })
	}
	b.Run("ServeMux", func(b *testing.B) {
		benchmark(b, Route(), r, func(f func(*http.Request), r *http.Request) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/orders/{id}", func(_ http.ResponseWriter, r *http.Request) { f(r) })
			mux.ServeHTTP(httptest.NewRecorder(), r)
		})
	})
}

func BenchmarkRouteIn(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", ok)
	benchmark(b, RouteIn(mux), httptest.NewRequest(http.MethodGet, "/v1/orders/1", nil), asItIs)
}

func BenchmarkJoin(b *testing.B) {
	r := httptest.NewRequest(http.MethodGet, "/v1/orders/1", nil)
	r.Header.Set("X-API-Key", "sk_live_0123456789abcdef")
	key := Join(APIKey("X-API-Key", anyKey), Route())
	b.Run("chi-with", func(b *testing.B) { benchmark(b, key, r, inChi("with")) })
	b.Run("Of", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = key.Of(r)
		}
	})
}
