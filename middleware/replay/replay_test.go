package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A build is the function of a service.
type build = func(algorithms.Limiter) (http.Handler, error)

// one returns a service whose only policy counts all requests. Its only route is path.
func one(path string, p ratelimit.Policy) build {
	return func(l algorithms.Limiter) (http.Handler, error) {
		p.Name = "p"
		m, err := ratelimit.New(l, nil, p)
		if err != nil {
			return nil, err
		}
		r := chi.NewRouter()
		r.Use(m.Handler)
		r.Get(path, served)
		return r, nil
	}
}

// limited returns a service with one limit, which its policy applies to each address.
func limited(t *testing.T, limit string) build {
	t.Helper()
	return one("/orders/{id}", ratelimit.Policy{Limit: parsed(t, limit)})
}

func parsed(t *testing.T, limit string) algorithms.Limit {
	t.Helper()
	l, err := algorithms.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run replays a log from the standard input.
func run(t *testing.T, service build, log string, out io.Writer, o Options) error {
	t.Helper()
	o.Files, o.Stdin, o.Stdout = []string{"-"}, strings.NewReader(log), out
	return Run(t.Context(), service, &o)
}

// noUser finds no user beside the log's.
func noUser(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{}, false }

// reportOf replays a log.
func reportOf(t *testing.T, service build, log string, o Options) (r report) {
	t.Helper()
	var out bytes.Buffer
	o.Format = "json"
	if err := run(t, service, log, &out, o); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A logged request of a trace.
type sent struct {
	at     time.Duration
	client int
}

func text(requests []sent) string {
	slices.SortFunc(requests, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&b, `{"time":%q,"address":"10.0.%d.%d","method":"GET","path":"/orders/7","status":200}`+"\n",
			begin.Add(r.at).Format(time.RFC3339Nano), r.client>>8, r.client&255)
	}
	return b.String()
}

// behaved returns the requests of clients that each need need units at once, every ten minutes of forty. One client in a
// hundred sends three requests a second all the time.
func behaved(clients, need int) (requests []sent) {
	random := rand.New(rand.NewPCG(1, 2))
	for client := range clients {
		for period := range 4 {
			at := time.Duration(period)*10*time.Minute + time.Duration(random.IntN(120))*time.Second
			for range need {
				requests = append(requests, sent{at + time.Duration(random.IntN(50_000))*time.Microsecond, client})
			}
		}
	}
	for client := range clients / 100 {
		for i := range 40 * 60 * 3 {
			requests = append(requests, sent{time.Duration(i) * time.Second / 3, clients + client})
		}
	}
	return requests
}

// TestDisorder: a log whose clock went back by hours has no conclusion.
func TestDisorder(t *testing.T) {
	t.Parallel()
	day := behaved(100, 10)
	late := text(day[len(day)/2:]) + text(day[:len(day)/2])
	late = strings.ReplaceAll(late, "T00:3", "T07:3")
	var out bytes.Buffer
	if err := run(t, limited(t, "60/1m"), late, &out, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Do not trust", "no proposal      the log is out of order"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in\n%s", want, out.String())
		}
	}
}

// TestTiersWithOneLimit: the proposal for tiers with the same limit is one field of Go.
func TestTiersWithOneLimit(t *testing.T) {
	t.Parallel()
	log := strings.ReplaceAll(text(behaved(1000, 1)), `"address":"10.`, `"user":"10.`)
	tiers := make(map[string]string)
	for client := range 1010 {
		tiers[fmt.Sprintf("10.0.%d.%d", client>>8, client&255)] = []string{"a", "b"}[client%2]
	}
	limit := algorithms.TokenBucket(60, time.Minute)
	service := one("/orders/{id}", ratelimit.Policy{
		Key: keyfunc.User(noUser), Limit: algorithms.TokenBucket(1, time.Minute), Tiers: map[string]algorithms.Limit{"a": limit, "b": limit},
	})
	r := reportOf(t, service, log, Options{Tiers: tiers})
	if p := r.Policies[0].Proposal; p == nil || strings.Count(p.Code, "Tiers") != 1 || strings.Count(p.Code, "token-bucket") != 2 {
		t.Errorf("got %+v, want one field with both tiers", p)
	}
}

// TestCounts: tiers, costs, outcomes that do not count, users and routes count as in a server.
func TestCounts(t *testing.T) {
	t.Parallel()
	line := func(second int, user, method, path string, status int) string {
		return fmt.Sprintf(`{"time":"2026-01-01T00:00:%02dZ","address":"192.0.2.1","user":%q,"method":%q,"path":%q,"status":%d}`+"\n", second, user, method, path, status)
	}
	var log strings.Builder
	for i := range 10 {
		log.WriteString(line(i, "ann", "GET", "/orders/1?x", 200))
		log.WriteString(line(i, "bob", "GET", "/orders/2", 200))
		log.WriteString(line(i, "", "POST", "/login", []int{200, 401}[i%2]))
		log.WriteString(line(i, "", "GET", "/stray", 404))
	}
	service := func(l algorithms.Limiter) (http.Handler, error) {
		limit := func(p ratelimit.Policy) func(http.Handler) http.Handler {
			return ratelimit.Must(ratelimit.New(l, nil, p)).Handler
		}
		r := chi.NewRouter()
		r.With(limit(ratelimit.Policy{
			Name: "orders", Key: keyfunc.Join(keyfunc.FirstOf(keyfunc.User(noUser), keyfunc.IP(nil)), keyfunc.Route()),
			Limit: algorithms.FixedWindow(6, time.Minute), Tiers: map[string]algorithms.Limit{"pro": algorithms.FixedWindow(16, time.Minute)},
			Cost: func(*http.Request) int64 { return 2 },
		})).Get("/orders/{id}", served)
		r.With(limit(ratelimit.Policy{
			Name: "login", Limit: algorithms.FixedWindow(3, time.Minute), ChargeIf: func(status int) bool { return status == http.StatusUnauthorized },
		})).Post("/login", served)
		r.NotFound(limit(ratelimit.Policy{
			Name: "strays", Key: keyfunc.Const("all"), Limit: algorithms.FixedWindow(1, time.Minute),
		})(served).ServeHTTP)
		return r, nil
	}
	r := reportOf(t, service, log.String(), Options{Tiers: map[string]string{"bob": "pro"}})
	got := make(map[string]string)
	for _, p := range r.Policies {
		got[p.Policy+" "+p.Limit+" "+p.Route] = fmt.Sprintf("%d of %d", p.Results[0].Denied, p.Results[0].Requests)
	}
	for series, want := range map[string]string{
		"orders fixed-window 6/1m GET /orders/{id}": "7 of 10", "orders fixed-window 16/1m GET /orders/{id}": "2 of 10",
		"login fixed-window 3/1m ": "4 of 10", "strays fixed-window 1/1m ": "9 of 10",
	} {
		if got[series] != want {
			t.Errorf("%s: got %s, want %s", series, got[series], want)
		}
	}
	if r.Unrouted != 0 || r.Bad != 0 {
		t.Errorf("got %d unmatched requests, want 0: a policy serves them", r.Unrouted)
	}
}

// TestHead: a HEAD counts as a GET, and runs no handler of the service. A route may end in a slash.
func TestHead(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for _, request := range []string{"HEAD /a", "GET /b/", "HEAD /b/"} {
		method, path, _ := strings.Cut(request, " ")
		fmt.Fprintf(&log, `{"time":"2026-01-01T00:00:00Z","address":"192.0.2.1","method":%q,"path":%q,"status":200}`+"\n", method, path)
	}
	s := func(l algorithms.Limiter) (http.Handler, error) {
		r := chi.NewRouter()
		r.Use(chimiddleware.GetHead, ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{Name: "p", Limit: algorithms.Nobody(), Shadow: true})).Handler)
		for _, path := range []string{"/a", "/b/"} {
			r.Get(path, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s ran its handler", r.Method, r.URL) })
		}
		return r, nil
	}
	r := reportOf(t, s, log.String(), Options{})
	if got := r.Policies[0].Results[0]; r.Unrouted != 0 || got.Denied != 3 {
		t.Errorf("got %d requests without a route and %d denied, want 0 and 3", r.Unrouted, got.Denied)
	}
}

// TestAddresses: a client has one key, whatever the server logs beside its IP address. Clients without one are counted.
func TestAddresses(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for _, address := range []string{
		"192.0.2.1", "192.0.2.1:5555", "2001:db8::1", "[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::/64", "fe80::1%eth0", "a.example", "unix:", "-",
	} {
		fmt.Fprintf(&log, `{"time":"2026-01-01T00:00:00Z","address":%q,"method":"GET","path":"/","status":200}`+"\n", address)
	}
	r := reportOf(t, limited(t, "1/1m"), log.String(), Options{})
	if got := r.Policies[0].Results[0]; r.Unknown != 1 || r.Bad != 2 || got.Requests != 8 || got.Keys != 4 {
		t.Errorf("got %d unknown addresses, %d bad lines, %d requests and %d keys, want 1, 2, 8 and 4", r.Unknown, r.Bad, got.Requests, got.Keys)
	}
}

// TestOutput: the table tells what the report has.
func TestOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t, limited(t, "20/1m burst 5"), text(behaved(100, 10))+"<bad>\n", &out, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"11,200 requests", "1 of 11,201 lines are bad", "<bad>", "token-bucket 20/1m burst 5", "busiest second", "it denies most", "denied most", "ip=10.0.0.100", `candidate := ratelimit.Must(algorithms.ParseLimit("token-bucket 45/1m burst 12"))`, "Candidate: &candidate"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in\n%s", want, out.String())
		}
	}
}

// TestSettledUnits: what a log says was settled moves the units of policies with a Cost, and of no other.
func TestSettledUnits(t *testing.T) {
	t.Parallel()
	line := `{"time":"2026-01-01T00:00:00Z","address":"192.0.2.1","method":"GET","path":"/a","status":200,` +
		`"settled":[{"at":"2026-01-01T00:00:00Z","policy":"p","units":-1}]}` + "\n"
	for _, tt := range []struct {
		cost   func(*http.Request) int64
		denied int64
	}{{nil, 2}, {func(*http.Request) int64 { return 1 }, 0}} {
		r := reportOf(t, one("/a", ratelimit.Policy{Limit: parsed(t, "2/1h"), Cost: tt.cost}), strings.Repeat(line, 4), Options{})
		if got := r.Policies[0].Results[0]; got.Requests != 4 || got.Denied != tt.denied {
			t.Errorf("with a Cost %v: got %d of %d requests denied, want %d of 4", tt.cost != nil, got.Denied, got.Requests, tt.denied)
		}
	}
}

// TestHold: a concurrent limit counts requests while they run.
func TestHold(t *testing.T) {
	t.Parallel()
	e := newEngine(nil)
	m := ratelimit.Must(ratelimit.New(e, nil, ratelimit.Policy{Name: "p", Key: keyfunc.Const("all"), Limit: algorithms.Concurrent(2, 3*time.Second)}))
	if err := e.serve(m.Handler(http.NotFoundHandler())); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		second, lasts int
		status        int
	}{{100, 10, 0}, {101, 1, 0}, {101, 1, 429}, {102, 30, 0}, {109, 1, 429}, {110, 1, 0}} {
		l := &entry{
			Time: int64(tt.second)*micros + 100*micros*864, Duration: time.Duration(tt.lasts) * time.Second,
			Address: "192.0.2.1", Method: "GET", Path: "/", Status: 200,
		}
		if err := l.parseURL(); err != nil {
			t.Fatal(err)
		}
		if v := e.decide(l); v.Status != tt.status {
			t.Errorf("request %d: got %d, want %d", i, v.Status, tt.status)
		}
	}
}
