package quota_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/quota"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func still() *algorithms.Memory {
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return noon }})
}

var account = keyfunc.APIKey("X-API-Key", func(_ context.Context, key string) (keyfunc.Identity, error) {
	id, found := map[string]keyfunc.Identity{"big": {ID: "acme", Tier: "big"}, "small": {ID: "globex"}}[key]
	if !found {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return id, nil
})

func get(h http.Handler, key string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	h.ServeHTTP(w, r)
	return w
}

func secret() []ratelimit.Policy {
	never := func(*http.Request) int64 { panic("a cost of the page") }
	day := algorithms.FixedWindow(10, 24*time.Hour)
	return []ratelimit.Policy{
		{Name: "plan", Key: account, Limit: day, Tiers: map[string]algorithms.Limit{"big": algorithms.FixedWindow(100, 24*time.Hour)}},
		{Name: "hidden", Key: account, Limit: day, Hidden: true},
		{Name: "capacity", Key: keyfunc.Const("all"), Limit: day, Capacity: true},
		{Name: "shadow", Key: account, Limit: day, Shadow: true},
		{Name: "route", Key: keyfunc.Join(account, keyfunc.Route()), Limit: day},
		{Name: "price", Key: account, Limit: algorithms.PerMonth(50, nil), Cost: never, Candidate: &day},
	}
}

// A client reads its own quotas, those of its tier, and none that is hidden. It is charged nothing, however often it
// looks, and no observer sees it.
func TestHandlerShowsAndChargesNothing(t *testing.T) {
	watch := ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Decided {
			t.Errorf("an observer saw %+v", e)
		}
	})
	limited := ratelimit.Must(ratelimit.New(still(), &ratelimit.Options{Observers: []ratelimit.Observer{watch}}, secret()...))
	for range 200 {
		w := get(quota.Handler(limited), "big")
		const want = `{"quotas":[{"policy":"plan","limit":"fixed-window 100/1d","most":100,"remaining":100,"unit_after":0,"reset_after":0},` +
			`{"policy":"price","limit":"calendar-window 50/month","most":50,"remaining":50,"unit_after":0,"reset_after":0}]}` + "\n"
		if w.Code != 200 || w.Body.String() != want {
			t.Fatalf("got %d %s, want %s", w.Code, w.Body, want)
		}
		fields := strings.Join(w.Header().Values("RateLimit-Policy"), " ")
		if !strings.Contains(fields, `"plan";q=100`) || strings.Contains(fields, "hidden") || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Retry-After") != "" {
			t.Fatalf("got fields %v", w.Header())
		}
	}
	if w := get(quota.Handler(limited), "small"); !strings.Contains(w.Body.String(), `"limit":"fixed-window 10/1d","most":10,"remaining":10`) {
		t.Errorf("another client: got %s", w.Body)
	}
}

// What it shows is what the next request meets: before, after, and when all is used up.
func TestHandlerAgreesWithRequests(t *testing.T) {
	limited := ratelimit.Must(ratelimit.New(still(), nil, secret()[0]))
	served := limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for left := 10; left >= 0; left-- {
		w := get(quota.Handler(limited), "small")
		want := map[bool]string{true: `"remaining":0,"unit_after":43200,"reset_after":43200}`, false: `"unit_after":0,`}[left == 0]
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Fatalf("%d left: got %d %s, want %s", left, w.Code, w.Body, want)
		}
		if got := get(served, "small").Code; (got == 200) != (left > 0) {
			t.Fatalf("%d left: the request got %d", left, got)
		}
	}
}

// Who is refused everywhere is refused here: without an identity, with a wrong one, and banned.
func TestHandlerRefuses(t *testing.T) {
	table := overrides.NewMemory()
	limited := ratelimit.Must(ratelimit.New(still(), &ratelimit.Options{Overrides: table}, secret()...))
	if err := table.Set(t.Context(), "plan", "usr=globex", ratelimit.Override{Mode: ratelimit.ModeBanned}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"": 401, "guess": 401, "small": 403, "big": 200} {
		if w := get(quota.Handler(limited), key); w.Code != want || strings.Contains(w.Body.String(), "quotas") != (want == 200) {
			t.Errorf("key %q: got %d %s, want %d", key, w.Code, w.Body, want)
		}
	}
	codes := map[int]int{}
	for i := range 60 {
		codes[get(quota.Handler(limited), "guess"+strings.Repeat("x", i)).Code]++
	}
	if codes[429] == 0 {
		t.Errorf("got %v of 60 guesses: the page helps to guess keys", codes)
	}
}

// Without a decision there are no figures, or a refusal where the policy fails closed.
func TestHandlerWithoutADecision(t *testing.T) {
	for fail, want := range map[algorithms.FailureMode]string{algorithms.FailOpen: `{"quotas":[{"policy":"plan","limit":"fixed-window 10/1d","most":10}]}`, algorithms.FailClosed: `"status":503`} {
		fake := limitertest.NewFake()
		fake.Fail(errors.New("down"))
		p := secret()[0]
		p.Fail = fail
		limited := ratelimit.Must(ratelimit.New(fake, nil, p))
		if w := get(quota.Handler(limited), "small"); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%v: got %d %s, want %s", fail, w.Code, w.Body, want)
		}
	}
}

// Several Middlewares are one page.
func TestHandlerOfSeveral(t *testing.T) {
	day := algorithms.FixedWindow(10, 24*time.Hour)
	one := ratelimit.Must(ratelimit.New(still(), nil, ratelimit.Policy{Name: "one", Limit: day}))
	two := ratelimit.Must(ratelimit.New(still(), nil, ratelimit.Policy{Name: "two", Limit: day}))
	w := get(quota.Handler(one, two), "")
	if body := w.Body.String(); !strings.Contains(body, `"policy":"one"`) || !strings.Contains(body, `"policy":"two"`) {
		t.Errorf("got %s", body)
	}
	if w := get(quota.Handler(), ""); w.Body.String() != `{"quotas":[]}`+"\n" {
		t.Errorf("of none: got %s", w.Body)
	}
}
