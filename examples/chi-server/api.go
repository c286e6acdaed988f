package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/demo"
	"github.com/penstock-go/penstock/keyfunc"
	// chi's package is called middleware, too.
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// newAPI returns the routes, each behind its limits.
func newAPI(b *backend, page *demo.Demo, c config, w *watch) (http.Handler, *limits, error) {
	l, err := newLimits(b, c, w)
	if err != nil {
		return nil, nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.Recoverer)
	r.With(l.orders.Handler).Get("/v1/orders/{id}", getOrder)
	r.With(l.search.Handler).Get("/v1/search", search)
	r.With(l.reports.Handler).Get("/v1/reports", reports)
	r.With(l.login.Handler).Post("/v1/login", login)
	r.With(l.sms.Handler).Post("/v1/sms", sendSMS)
	r.With(l.charges.Handler).Post("/v1/charges", createCharge)
	r.With(l.completions.Handler).Post("/v1/completions", complete)
	r.Get("/healthz", health)
	r.Method(http.MethodGet, "/metrics", w.page())
	r.Handle("/status", w.status) // of a service, for its operators only
	if c.adminToken != "" {
		admin, err := l.admin(c.adminToken)
		if err != nil {
			return nil, nil, err
		}
		r.Handle("/admin/*", admin)
	}
	page.Mount(r, l.demo.Handler)
	r.NotFound(l.unmatched.Handler(statusOnly(http.StatusNotFound)).ServeHTTP)
	r.MethodNotAllowed(l.unmatched.Handler(methodNotAllowed(r)).ServeHTTP)
	return r, l, nil
}

// limits are the middlewares of the API, one per group of routes.
type limits struct {
	orders, search, reports, login, sms, charges, completions, demo, console, unmatched *ratelimit.Middleware

	apiKey keyfunc.Key
	all    []*ratelimit.Middleware
}

func newLimits(b *backend, c config, w *watch) (*limits, error) {
	ip := keyfunc.IP(&keyfunc.IPOptions{Trusted: c.trusted})
	apiKey := keyfunc.FirstOf(
		keyfunc.APIKey("X-API-Key", c.secret, known),
		keyfunc.APIKey("Authorization", c.secret, known),
	)
	client := keyfunc.Join(keyfunc.FirstOf(apiKey, ip), keyfunc.Route())

	l := &limits{apiKey: apiKey}
	options := ratelimit.Options{ClientIP: ip, Headers: c.headers, Overrides: b.table, Logger: w.log, Observer: w.observer()}
	var errs error
	addWith := func(o ratelimit.Options, policies ...ratelimit.Policy) *ratelimit.Middleware {
		m, err := ratelimit.New(b.limiter, &o, policies...)
		if err != nil {
			errs = errors.Join(errs, err)
			return nil
		}
		w.middleware(m)
		l.all = append(l.all, m)
		return m
	}
	add := func(policies ...ratelimit.Policy) *ratelimit.Middleware { return addWith(options, policies...) }

	l.orders = add(ratelimit.Policy{
		Name: "orders", Key: client,
		Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(10),
	})
	l.search = add(ratelimit.Policy{
		Name: "search", Key: client, Cost: searchCost,
		Limit: algorithms.SlidingWindowCounter(30, time.Minute),
	})
	l.reports = add(ratelimit.Policy{
		Name: "reports", Key: client,
		Limit: algorithms.FixedWindow(20, time.Minute),
	})
	l.login = add(ratelimit.Policy{
		Name: "login", Key: ip, Fail: algorithms.FailClosed,
		Limit:    algorithms.SlidingWindowLog(5, time.Minute),
		ChargeIf: func(status int) bool { return status == http.StatusUnauthorized }, // only failures count
	})
	l.sms = add(ratelimit.Policy{
		Name: "sms", Key: client,
		Limit: algorithms.LeakyBucket(2, time.Second).WithBurst(5),
	})
	l.charges = add(
		ratelimit.Policy{
			Name: chargesMerchant, Key: apiKey, Tier: plan,
			Limit: perMinute(100),
			Tiers: map[string]algorithms.Limit{
				"free": perMinute(100), "pro": perMinute(1_000), "enterprise": perMinute(5_000),
			},
		},
		ratelimit.Policy{
			Name: "charges-global", Key: keyfunc.Route(), Private: true,
			Limit: algorithms.TokenBucket(10_000, time.Second),
		})
	l.completions = add(ratelimit.Policy{
		Name: completions, Key: apiKey,
		Limit: algorithms.TokenBucket(10_000, time.Minute),
		Late:  true, Cost: func(*http.Request) int64 { return reservedTokens },
	})
	l.demo = add(ratelimit.Policy{
		Name: "demo", Key: ip, Private: true, Cost: demoCost, // not to be taken for a sandbox's own
		Limit: algorithms.TokenBucket(3_000, time.Minute).WithBurst(1_500),
	})
	l.unmatched = add(ratelimit.Policy{
		Name: "unmatched", Key: ip,
		Limit: algorithms.TokenBucket(60, time.Minute),
	})
	unswitchable := options // whoever has the token may switch the other limits off, but not that on guessing it
	unswitchable.Overrides = nil
	l.console = addWith(unswitchable, ratelimit.Policy{
		Name: "console", Key: ip,
		Limit:    algorithms.SlidingWindowLog(10, time.Minute),
		ChargeIf: func(status int) bool { return status == http.StatusForbidden }, // guesses of the token
		Ban:      &ratelimit.Ban{Denials: 10, Within: time.Minute, For: time.Minute, Max: time.Hour},
	})
	return l, errs
}

// chargesMerchant is the policy whose limits -override replaces.
const chargesMerchant = "charges-merchant"

// perMinute is the limit of a plan: a tenth of it may come at once.
func perMinute(n int64) algorithms.Limit {
	return algorithms.TokenBucket(n, time.Minute).WithBurst(n / 10)
}

// searchCost charges five times for a deep search.
func searchCost(r *http.Request) int64 {
	if r.URL.Query().Get("deep") == "1" {
		return 5
	}
	return 1
}

// plans are the API keys that exist, and what their owners pay for. A service
// would ask its database, through a cache.
var plans = map[string]string{
	"demo-free":       "free",
	"demo-pro":        "pro",
	"demo-enterprise": "enterprise",
}

func known(key string) bool { return plans[key] != "" }

// plan is the tier of a request: that of the key which the policies find, first
// in X-API-Key, then as a bearer token. An unknown key never gets here, since
// the policy's key refuses it.
func plan(r *http.Request) string {
	if key := r.Header.Get("X-API-Key"); key != "" {
		return plans[key]
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return plans[strings.TrimSpace(token)]
}

// close releases the requests that are held, and waits for what is settled late.
func (l *limits) close(ctx context.Context) error {
	errs := make([]error, len(l.all))
	var closing sync.WaitGroup
	for i, m := range l.all {
		closing.Go(func() { errs[i] = m.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

func getOrder(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"order": chi.URLParam(r, "id"), "state": "paid"})
}

func search(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"query": r.URL.Query().Get("q"), "hits": []string{}})
}

func reports(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"reports": []string{"2026-10"}})
}

// login answers 401 to whatever is not the demo's user, also to no body at all.
func login(w http.ResponseWriter, r *http.Request) {
	var credentials struct{ User, Password string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&credentials)
	if err != nil || credentials.User != "demo" || credentials.Password != "demo" {
		statusOnly(http.StatusUnauthorized)(w, r)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"user": credentials.User})
}

func sendSMS(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"sent": true})
}

func createCharge(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"charged": true, "plan": plan(r)})
}

const (
	completions    = "completions" // its policy's name
	reservedTokens = 500           // that most completions take
	maxTokens      = 10_000
)

// complete makes up as many tokens as it is asked for, and pays for them as they
// come, like a model whose answer is streamed.
func complete(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		MaxTokens int64 `json:"max_tokens"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&ask)
	if err != nil || ask.MaxTokens < 1 || ask.MaxTokens > maxTokens {
		statusOnly(http.StatusBadRequest)(w, r)
		return
	}
	used := (ask.MaxTokens*3 + 3) / 4 // it seldom takes all it may
	for part := range used / 1_000 {
		_ = ratelimit.Settle(r.Context(), completions, (part+1)*1_000) // what fails is made good by the last
	}
	if err := ratelimit.Settle(r.Context(), completions, used); err != nil {
		statusOnly(http.StatusInternalServerError)(w, r)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"used": used})
}

func health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
}

// methodNotAllowed answers 405 and the methods that the path allows.
func methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		statusOnly(http.StatusMethodNotAllowed)(w, r)
	}
}

// statusOnly answers a status and its text.
func statusOnly(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, code, map[string]any{"error": http.StatusText(code)})
	}
}

func writeJSON(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
