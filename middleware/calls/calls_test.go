package calls_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/calls"
	"github.com/penstock-go/penstock/middleware/overrides"
)

func lookup(_ context.Context, key string) (keyfunc.Identity, error) {
	if key != "good" {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return keyfunc.Identity{ID: "acme", Tier: "big"}, nil
}

var (
	account  = keyfunc.APIKey("X-API-Key", lookup)
	perHour  = func(n int64) algorithms.Limit { return algorithms.FixedWindow(n, 24*time.Hour) }
	proxied  = keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	acme     = keyfunc.Identity{ID: "acme", Tier: "big"}
	withKey  = http.Header{"x-api-key": {"good"}}
	accounts = ratelimit.Policy{Name: "accounts", Key: account, Limit: perHour(1), Tiers: map[string]algorithms.Limit{"big": perHour(3)}}
)

// A client has one count, whether it comes by HTTP, with metadata, or named by the program. Its tier and its overrides
// hold, and observers see all of it.
func TestAllowCountsTheClient(t *testing.T) {
	table := overrides.NewMemory()
	var seen []ratelimit.Outcome
	watch := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Decided {
			seen = append(seen, e.Verdict.Policies[0].Outcome)
		}
	})
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Overrides: table, Observers: []ratelimit.Observer{watch}}, accounts))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-API-Key", "good")
	w := httptest.NewRecorder()
	limited.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	for i, c := range []calls.Call{{Identity: acme}, {Header: withKey}, {Identity: acme}} {
		v, err := calls.Allow(t.Context(), limited, c)
		if err != nil || v.Allowed != (i < 2) || v.Policies[0].Tier != "big" {
			t.Errorf("call %d: got %+v, error %v, want two more of three", i, v, err)
		}
	}
	if v, err := calls.Allow(t.Context(), limited, calls.Call{Identity: keyfunc.Identity{ID: "other"}}); err != nil || !v.Allowed {
		t.Errorf("another client: got %+v, error %v", v, err)
	}
	if err := table.Set(t.Context(), "accounts", "usr=acme", ratelimit.Override{Mode: ratelimit.ModeBanned}); err != nil {
		t.Fatal(err)
	}
	if v, err := calls.Allow(t.Context(), limited, calls.Call{Identity: acme}); err != nil || v.Status != 403 {
		t.Errorf("banned: got %+v, error %v", v, err)
	}
	want := []ratelimit.Outcome{ratelimit.OutcomeAllowed, ratelimit.OutcomeAllowed, ratelimit.OutcomeAllowed, ratelimit.OutcomeDenied, ratelimit.OutcomeAllowed, ratelimit.OutcomeBanned}
	for i := range want {
		if len(seen) != len(want) || seen[i] != want[i] {
			t.Fatalf("observers saw %v, want %v", seen, want)
		}
	}
}

// Nobody is counted as somebody else: without an identity or with a wrong one, a call is refused.
func TestAllowRefusesUnknownClients(t *testing.T) {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, accounts))
	for name, tt := range map[string]struct {
		call calls.Call
		err  error
	}{"missing": {calls.Call{}, keyfunc.ErrMissing}, "unknown": {calls.Call{Header: http.Header{"X-Api-Key": {"guess"}}}, keyfunc.ErrUnknown}} {
		if v, err := calls.Allow(t.Context(), limited, tt.call); v.Status != 401 || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %+v, error %v, want 401", name, v, err)
		}
	}
}

// Behind a proxy, the client is the one that the proxy names. A client past the proxy names nobody else.
func TestAllowFindsTheClientBehindAProxy(t *testing.T) {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{ClientIP: proxied, PlainKeys: true},
		ratelimit.Policy{Name: "p", Limit: algorithms.Nobody()}))
	for peer, want := range map[string]string{"10.1.1.1:99": "ip=203.0.113.9", "192.0.2.1:99": "ip=192.0.2.1", "": "ip=unknown"} {
		v, err := calls.Allow(t.Context(), limited, calls.Call{Peer: peer, Header: http.Header{"x-forwarded-for": {"203.0.113.9"}}})
		if err != nil || v.Policies[0].Key != want {
			t.Errorf("peer %q: got %+v, error %v, want %s", peer, v, err, want)
		}
	}
}

// Each name has its own limit, also in a connection that chi has routed. The context's user is the client.
func TestAllowCountsNames(t *testing.T) {
	type userKey struct{}
	user := keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
		id, ok := ctx.Value(userKey{}).(string)
		return keyfunc.Identity{ID: id}, ok
	})
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "tools", Key: keyfunc.Join(user, keyfunc.Route()), Limit: perHour(1)}))
	ctx := context.WithValue(t.Context(), userKey{}, "42")
	routed := chi.NewRouteContext()
	routed.RoutePatterns = []string{"/ws"}
	for i, ctx := range []context.Context{ctx, context.WithValue(ctx, chi.RouteCtxKey, routed)} {
		for _, tool := range []string{"search", "send"} {
			if v, err := calls.Allow(ctx, limited, calls.Call{Name: tool}); err != nil || v.Allowed != (i == 0) {
				t.Errorf("call %d of %s: got %+v, error %v", i, tool, v, err)
			}
		}
	}
}

// A limit that a call cannot give back is an error, and charges nothing.
func TestAllowOfConcurrent(t *testing.T) {
	limited := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{Name: "p", Key: keyfunc.Const("all"), Limit: algorithms.Concurrent(1, time.Second)}))
	if _, err := calls.Allow(t.Context(), limited, calls.Call{}); !errors.Is(err, algorithms.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}
