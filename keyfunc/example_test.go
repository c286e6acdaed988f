package keyfunc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/keyfunc"
)

// show prints the key of r, or why it has none.
func show(k keyfunc.Key, r *http.Request) {
	s, err := k.Of(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
}

// showing is a middleware that prints the key of each request.
func showing(k keyfunc.Key) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			show(k, r)
			next.ServeHTTP(w, r)
		})
	}
}

func getOrder(http.ResponseWriter, *http.Request) {}

func get(h http.Handler, targets ...string) {
	for _, target := range targets {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	}
}

type userKey struct{}

func userFrom(ctx context.Context) string {
	id, _ := ctx.Value(userKey{}).(string)
	return id
}

// secret comes from the configuration of the deployment.
var secret = []byte("an example, not a secret")

func known(key string) bool { return key == "sk_live_1" }

func ExampleIP() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "[2001:db8:1:2:3:4:5:6]:4711"
	r.Header.Set("X-Forwarded-For", "6.6.6.6") // by the client itself
	show(keyfunc.IP(nil), r)
	// Output: ip=2001:db8:1:2::/64
}

func ExampleIP_behindProxies() {
	client := keyfunc.IP(&keyfunc.IPOptions{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:4711" // the load balancer
	r.Header.Set("X-Forwarded-For", "6.6.6.6, 192.0.2.7, 10.0.0.2")
	show(client, r)
	// Output: ip=192.0.2.7
}

// The classic mistake: the leftmost address of X-Forwarded-For is whatever the
// client has sent. Each request may claim another, and nobody is limited.
func ExampleIP_incorrect() {
	client := keyfunc.Custom("client", func(r *http.Request) (string, error) {
		return r.Header.Get("X-Forwarded-For"), nil // use IP instead
	})
	for _, forged := range []string{"6.6.6.6", "6.6.6.7"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Forwarded-For", forged)
		show(client, r)
	}
	// Output:
	// client=6.6.6.6
	// client=6.6.6.7
}

func ExampleAPIKey() {
	client := keyfunc.APIKey("X-API-Key", secret, known)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	show(client, r)
	r.Header.Set("X-API-Key", "sk_live_2")
	show(client, r)
	r.Header.Set("X-API-Key", "sk_live_1")
	show(client, r)
	// Output:
	// keyfunc: X-Api-Key: missing
	// keyfunc: X-Api-Key: unknown
	// key=7G8KjB8QnXD8sHfnBd1gSg
}

func ExampleAPIKey_bearer() {
	client := keyfunc.APIKey("Authorization", secret, known)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer sk_live_1")
	show(client, r)
	r.Header.Set("Authorization", "Basic dXNlcjpwYXNz")
	show(client, r)
	// Output:
	// key=7G8KjB8QnXD8sHfnBd1gSg
	// keyfunc: Authorization: missing
}

func ExampleHeader() {
	tenant := keyfunc.Header("X-Tenant") // which the gateway overwrites
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Tenant", "acme|{1}")
	show(tenant, r)
	// Output: hdr.x-tenant=acme%7C%7B1%7D
}

func ExampleUser() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(context.WithValue(r.Context(), userKey{}, "42"))
	show(keyfunc.User(userFrom), r)
	// Output: usr=42
}

func ExampleConst() {
	show(keyfunc.Const("all"), httptest.NewRequest(http.MethodGet, "/", nil))
	// Output: const=all
}

func ExampleRoute_chi() {
	r := chi.NewRouter()
	r.Use(showing(keyfunc.Route()))
	r.Route("/v1", func(r chi.Router) {
		r.Get("/orders/{id}", getOrder)
	})
	get(r, "/v1/orders/1", "/v1/orders/2", "/wp-login.php")
	// Output:
	// rt=GET%20/v1/orders/%7Bid%7D
	// rt=GET%20/v1/orders/%7Bid%7D
	// rt=unmatched
}

func ExampleRoute_serveMux() {
	limited := showing(keyfunc.Route())
	mux := http.NewServeMux()
	mux.Handle("GET /v1/orders/{id}", limited(http.HandlerFunc(getOrder)))
	get(mux, "/v1/orders/1", "/v1/orders/2")
	// Output:
	// rt=GET%20/v1/orders/%7Bid%7D
	// rt=GET%20/v1/orders/%7Bid%7D
}

// Around a ServeMux nothing in the request leads to its patterns, and all
// routes share one bucket.
func ExampleRoute_incorrect() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", getOrder)
	get(showing(keyfunc.Route())(mux), "/v1/orders/1") // use RouteIn(mux) instead
	// Output: rt=unmatched
}

func ExampleRouteIn() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", getOrder)
	get(showing(keyfunc.RouteIn(mux))(mux), "/v1/orders/1", "/wp-login.php")
	// Output:
	// rt=GET%20/v1/orders/%7Bid%7D
	// rt=unmatched
}

func ExampleJoin() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", getOrder)
	perRoute := keyfunc.Join(keyfunc.IP(nil), keyfunc.RouteIn(mux))
	get(showing(perRoute)(mux), "/v1/orders/1")
	// Output: ip=192.0.2.1|rt=GET%20/v1/orders/%7Bid%7D
}

func ExampleFirstOf() {
	client := keyfunc.FirstOf(keyfunc.User(userFrom), keyfunc.IP(nil))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	show(client, r)
	show(client, r.WithContext(context.WithValue(r.Context(), userKey{}, "42")))
	// Output:
	// ip=192.0.2.1
	// usr=42
}

func ExampleCustom() {
	certificate := keyfunc.Custom("cert", func(r *http.Request) (string, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return "", keyfunc.ErrMissing
		}
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	})
	_, err := certificate.Of(httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(err, errors.Is(err, keyfunc.ErrMissing))
	// Output: keyfunc: cert: missing true
}

func ExampleKey_Append() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	buf := make([]byte, 0, 64) // to be used again for the next request
	buf, err := keyfunc.IP(nil).Append(buf, r)
	fmt.Println(string(buf), err)
	// Output: ip=192.0.2.1 <nil>
}

func ExampleKey_Validate() {
	k := keyfunc.Join(
		keyfunc.Route(),
		keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}}),
		keyfunc.APIKey("X-API-Key", []byte("short"), nil),
	)
	fmt.Println(k.Validate())
	// Output:
	// keyfunc: IP: trusted prefix "10.0.0.1/8" has bits behind its mask; write "10.0.0.0/8"
	// keyfunc: APIKey: the secret for "X-Api-Key" has 5 bytes, it needs 16 or more
	// keyfunc: APIKey: known is nil for "X-Api-Key": a key counts only when it is verified
	// keyfunc: Join must not begin with a route: the first part places a key in a Redis Cluster; put the client first
}
