package keyfunc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/keyfunc"
)

// show prints the key of r, or why it has none.
func show(k keyfunc.Key, r *http.Request) {
	s, _, err := k.Append(nil, &keyfunc.Request{Request: r})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(s))
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

func userFrom(ctx context.Context) (keyfunc.Identity, bool) {
	id, ok := ctx.Value(userKey{}).(keyfunc.Identity)
	return id, ok
}

// lookup stands for a query of the service's database.
func lookup(_ context.Context, key string) (keyfunc.Identity, error) {
	if key != "sk_live_1" {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return keyfunc.Identity{ID: "acme", Tier: "enterprise"}, nil
}

// A bounded cache in front of the database also remembers unknown keys, so that
// guesses do not reach the database again and again.
func ExampleCached() {
	queries := 0
	database := func(_ context.Context, key string) (keyfunc.Identity, error) {
		queries++
		return lookup(context.Background(), key)
	}
	client := keyfunc.APIKey("X-API-Key", keyfunc.Cached(database, 10_000, time.Minute))

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, key := range []string{"sk_live_1", "sk_live_1", "guess", "guess"} {
		r.Header.Set("X-API-Key", key)
		show(client, r)
	}
	fmt.Println(queries, "queries")
	// Output:
	// usr=acme
	// usr=acme
	// keyfunc: X-Api-Key: unknown
	// keyfunc: X-Api-Key: unknown
	// 2 queries
}

// Logins are limited by account, whatever address they come from. The handler reads the body as if nobody had.
func ExampleJSONField() {
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(`{"account": " Alice", "password": "guess"}`))
	show(keyfunc.JSONField("login", "account"), r)
	body, _ := io.ReadAll(r.Body)
	fmt.Println(string(body))
	// Output:
	// login=alice
	// {"account": " Alice", "password": "guess"}
}

func ExampleFormField() {
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("account=alice%40example.com&password=guess"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	show(keyfunc.FormField("login", "account"), r)
	// Output:
	// login=alice@example.com
}

// A console, or a table of overrides, takes a client by the text of its key.
func ExampleText() {
	fmt.Println(keyfunc.Text("hdr.x-customer", "Acme GmbH"))
	fmt.Println(keyfunc.Text("usr", "42") + "|" + keyfunc.Text("rt", "GET /v1/orders"))
	// Output:
	// hdr.x-customer=Acme%20GmbH
	// usr=42|rt=GET%20/v1/orders
}

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

// The client writes the leftmost address of X-Forwarded-For. Each request may
// claim another address, and no client is limited.
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

// Two load balancers without fixed addresses each append their peer.
func ExampleIP_hops() {
	client := keyfunc.IP(&keyfunc.IPOptions{Hops: 2})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:4711" // the inner load balancer
	r.Header.Set("X-Forwarded-For", "6.6.6.6, 192.0.2.7, 10.0.0.2")
	show(client, r)
	// Output: ip=192.0.2.7
}

func ExamplePeer() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:4711" // the load balancer
	r.Header.Set("X-Forwarded-For", "192.0.2.7")
	show(keyfunc.Peer(), r)
	// Output: ip=10.0.0.1
}

func ExampleAPIKey() {
	client := keyfunc.APIKey("X-API-Key", lookup)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	show(client, r)
	r.Header.Set("X-API-Key", "sk_live_2")
	show(client, r)
	r.Header.Set("X-API-Key", "sk_live_1")
	show(client, r)
	// Output:
	// keyfunc: X-Api-Key: missing
	// keyfunc: X-Api-Key: unknown
	// usr=acme
}

func ExampleAPIKey_bearer() {
	client := keyfunc.APIKey("Authorization", lookup)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer sk_live_1")
	show(client, r)
	r.Header.Set("Authorization", "Basic dXNlcjpwYXNz")
	show(client, r)
	// Output:
	// usr=acme
	// keyfunc: Authorization: missing
}

func ExampleHeader() {
	tenant := keyfunc.Header("X-Tenant") // the gateway overwrites it
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Tenant", "acme|{1}")
	show(tenant, r)
	// Output: hdr.x-tenant=acme%7C%7B1%7D
}

func ExampleUser() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(context.WithValue(r.Context(), userKey{}, keyfunc.Identity{ID: "42", Tier: "free"}))
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
	show(client, r.WithContext(context.WithValue(r.Context(), userKey{}, keyfunc.Identity{ID: "42", Tier: "free"})))
	// Output:
	// ip=192.0.2.1
	// usr=42
}

// Signed-in users have a limit by account. Visitors are counted by address alone, and need not sign in.
func ExampleOptional() {
	account := keyfunc.Optional(keyfunc.User(userFrom))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	_, err := account.Of(r)
	fmt.Println(errors.Is(err, keyfunc.ErrNotCounted))
	show(account, r.WithContext(context.WithValue(r.Context(), userKey{}, keyfunc.Identity{ID: "42"})))
	// Output:
	// true
	// usr=42
}

func ExampleCustom() {
	certificate := keyfunc.Custom("cert", func(r *http.Request) (string, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return "", keyfunc.ErrMissing // 400
		}
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	})
	_, _, err := certificate.Append(nil, &keyfunc.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil)})
	fmt.Println(err, errors.Is(err, keyfunc.ErrMissing))
	// Output: keyfunc: cert: missing true
}

// A wrong field of the input is malformed: the client receives 400.
func ExampleCustom_malformed() {
	warehouse := keyfunc.Custom("warehouse", func(r *http.Request) (string, error) {
		n, err := strconv.Atoi(r.URL.Query().Get("warehouse"))
		if err != nil || n < 1 || n > 40 {
			return "", keyfunc.ErrMalformed
		}
		return strconv.Itoa(n), nil
	})
	for _, target := range []string{"/stock?warehouse=7", "/stock?warehouse=x"} {
		show(warehouse, httptest.NewRequest(http.MethodGet, target, nil))
	}
	// Output:
	// warehouse=7
	// keyfunc: warehouse: malformed
}

// A middleware resolves the keys of all its policies with one Request. It
// finds the client's address by ClientIP, and looks each identity up once.
func ExampleKey_Append() {
	apiKey := keyfunc.APIKey("X-API-Key", lookup)
	q := keyfunc.Request{ClientIP: keyfunc.IP(&keyfunc.IPOptions{Hops: 1})}
	q.Request = httptest.NewRequest(http.MethodGet, "/", nil)
	q.Header.Set("X-API-Key", "sk_live_1")
	q.Header.Set("X-Forwarded-For", "192.0.2.7")

	var buf []byte // for all keys of all requests
	for _, k := range []keyfunc.Key{apiKey, keyfunc.Join(apiKey, keyfunc.Route()), keyfunc.IP(nil)} {
		key, tier, err := k.Append(buf[:0], &q)
		fmt.Printf("%s %q %v\n", key, tier, err)
		buf = key
	}
	// Output:
	// usr=acme "enterprise" <nil>
	// usr=acme|rt=unmatched "enterprise" <nil>
	// ip=192.0.2.7 "" <nil>
}

func ExampleKey_Inspect() {
	_, err := keyfunc.Join(
		keyfunc.Route(),
		keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}}),
		keyfunc.APIKey("X-API-Key", nil),
	).Inspect()
	fmt.Println(err)
	// Output:
	// keyfunc: IP: trusted prefix "10.0.0.1/8" has bits behind its mask; write "10.0.0.0/8"
	// keyfunc: APIKey: lookup is nil for "X-Api-Key": a key counts only after verification
	// keyfunc: Join must not begin with a route: the first part places a key in a Redis Cluster; put the client first
}
