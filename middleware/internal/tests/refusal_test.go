package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

const noRequests = `{"type":"https://github.com/penstock-go/penstock/blob/main/RECIPES.md#no-requests-allowed",` +
	`"title":"No Requests Allowed","status":403`

// TestNobodyIsForbidden: no wait helps, and clients retry a 429 without Retry-After at once.
func TestNobodyIsForbidden(t *testing.T) {
	nobody := algorithms.Nobody()
	limitOf, tier := byIP("p", hourly), ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly}
	limitOf.LimitOf = func(*http.Request) (algorithms.Limit, error) { return nobody, nil }
	tier.Tiers = map[string]algorithms.Limit{"big": nobody}
	hidden, capacity, shadow := byIP("p", nobody), byIP("p", nobody), byIP("p", nobody)
	hidden.Hidden, capacity.Capacity, shadow.Shadow = true, true, true
	used := byIP("used", perHour(1))
	used.Cost = costOf(2)
	for name, tt := range map[string]struct {
		policies []ratelimit.Policy
		status   int
		body     string
	}{
		"alone":             {[]ratelimit.Policy{byIP("p", nobody)}, 403, noRequests + `,"violated-policies":["p"]}`},
		"by LimitOf":        {[]ratelimit.Policy{limitOf}, 403, noRequests + `,"violated-policies":["p"]}`},
		"hidden":            {[]ratelimit.Policy{hidden}, 403, noRequests + `}`},
		"beside a denial":   {[]ratelimit.Policy{byIP("p", nobody), used}, 403, noRequests + `,"violated-policies":["p","used"]}`},
		"after a denial":    {[]ratelimit.Policy{used, byIP("p", nobody)}, 403, noRequests + `,"violated-policies":["used","p"]}`},
		"beside a success":  {[]ratelimit.Policy{byIP("q", hourly), byIP("p", nobody)}, 403, noRequests + `,"violated-policies":["p"]}`},
		"no capacity":       {[]ratelimit.Policy{capacity}, 503, `"status":503}`},
		"a shadow":          {[]ratelimit.Policy{shadow}, 200, ""},
		"tier of no client": {[]ratelimit.Policy{tier}, 401, `"status":401`},
	} {
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, tt.policies...)
		w := record(m.Handler(ok), from("192.0.2.1"))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: got %d %s and Retry-After %q, want %d %s and none", name, w.Code, w.Body, w.Header().Get("Retry-After"), tt.status, tt.body)
		}
	}
	m := newMiddleware(t, newStill(t), nil, byIP("p", nobody))
	if got := record(m.Handler(ok), from("192.0.2.1")).Header().Get("RateLimit"); got != `"p";r=0` {
		t.Errorf("got RateLimit %q, want r=0", got)
	}
	w := record(m.Handler(ok), rpc("Content-Type", "application/grpc"))
	if got, want := grpcFields(w.Header()), text("Grpc-Message: No Requests Allowed", "Grpc-Status: 7"); got != want {
		t.Errorf("gRPC: got\n%swant\n%s", got, want)
	}
	w = record(m.Handler(ok), rpc("Connect-Protocol-Version", "1"))
	if want := `{"code":"permission_denied","message":"No Requests Allowed"}`; w.Code != 403 || w.Body.String() != want {
		t.Errorf("Connect: got %d %s, want 403 %s", w.Code, w.Body, want)
	}
}

// TestBanOfNobody: a ban answers as a ban, whatever the limit.
func TestBanOfNobody(t *testing.T) {
	table := overrides.NewMemory()
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, byIP("p", algorithms.Nobody()))
	override(t, table, "p", "ip=192.0.2.1", ratelimit.Override{Mode: ratelimit.ModeBanned})
	w := record(m.Handler(ok), from("192.0.2.1"))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "abnormal-usage-detected") {
		t.Errorf("got %d %s, want 403 of a ban", w.Code, w.Body)
	}
}

// TestBodySaysThatNoWaitHelps: a client of a request that costs more than the burst should not repeat it.
func TestBodySaysThatNoWaitHelps(t *testing.T) {
	dear := byIP("p", perHour(1))
	dear.Cost = costOf(2)
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, dear)
	w := record(m.Handler(ok), from("192.0.2.1"))
	want := strings.TrimSuffix(quotaExceeded(`,"violated-policies":["p"]`), "}") + `,"detail":"The request costs more than the limit allows at once. No wait helps."}`
	if w.Code != 429 || w.Body.String() != want || w.Header().Get("Retry-After") != "" {
		t.Errorf("got %d %s and Retry-After %q, want 429 %s and none", w.Code, w.Body, w.Header().Get("Retry-After"), want)
	}
	plain := newMiddleware(t, newStill(t), nil, byIP("p", perHour(1))).Handler(ok)
	record(plain, from("192.0.2.1"))
	if w := record(plain, from("192.0.2.1")); w.Header().Get("Retry-After") != "3600" || strings.Contains(w.Body.String(), "detail") {
		t.Errorf("got %s, want a wait and no detail", w.Body)
	}
}

// TestUnauthorizedNamesTheHeader that should have had the key.
func TestUnauthorizedNamesTheHeader(t *testing.T) {
	none := func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{}, keyfunc.ErrUnknown }
	account, bearer := keyfunc.APIKey("X-API-Key", none), keyfunc.APIKey("Authorization", none)
	user := keyfunc.User(func(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{}, false })
	for name, tt := range map[string]struct {
		keys []keyfunc.Key
		want string
	}{
		"an API key": {[]keyfunc.Key{account}, `"status":401,"detail":"The request needs a valid key in X-Api-Key."}`},
		"a token":    {[]keyfunc.Key{bearer}, `"status":401,"detail":"The request needs a valid key in Authorization: Bearer."}`},
		"either": {[]keyfunc.Key{keyfunc.FirstOf(account, bearer)},
			`"status":401,"detail":"The request needs a valid key in X-Api-Key or Authorization: Bearer."}`},
		"a user": {[]keyfunc.Key{user}, `"status":401}`},
	} {
		var policies []ratelimit.Policy
		for i, key := range tt.keys {
			policies = append(policies, ratelimit.Policy{Name: string(rune('a' + i)), Key: key, Limit: hourly})
		}
		h := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: quiet}, policies...).Handler(ok)
		if w := record(h, from("192.0.2.1")); w.Code != 401 || !strings.HasSuffix(w.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s, want %s", name, w.Code, w.Body, tt.want)
		}
	}
}

// TestBannedClientSeesItsPlan: a ban does not change what the client has bought.
func TestBannedClientSeesItsPlan(t *testing.T) {
	plans := ratelimit.Policy{Name: "plan", Key: apiKey, Limit: perHour(10), Tiers: map[string]algorithms.Limit{"big": perHour(100)}}
	own := plans
	own.LimitOf = func(*http.Request) (algorithms.Limit, error) { return algorithms.TokenBucket(70, time.Hour), nil }
	for _, tt := range []struct {
		p    ratelimit.Policy
		want string
	}{{plans, `"plan";q=100;w=3600`}, {own, `"plan";q=70;w=3600`}} {
		table := overrides.NewMemory()
		h := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, tt.p).Handler(ok)
		override(t, table, "plan", "usr=42", ratelimit.Override{Mode: ratelimit.ModeBanned})
		w := record(h, with(from("192.0.2.1"), "X-API-Key", "good-key"))
		if got := w.Header().Get("RateLimit-Policy"); w.Code != 403 || got != tt.want {
			t.Errorf("got %d and %s, want 403 and %s", w.Code, got, tt.want)
		}
	}
}
