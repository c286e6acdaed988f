package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"flag"
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
	"github.com/penstock-go/penstock/middleware"
)

// A build is the function of a service.
type build = func(algorithms.Limiter) (http.Handler, error)

// run replays a log from the standard input. args are flags; without a function, they name files of policies and routes.
func run(t *testing.T, service build, log string, out io.Writer, args ...string) error {
	t.Helper()
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := Flags(flags)
	if err := flags.Parse(append([]string{"-replay", "-"}, args...)); err != nil {
		t.Fatal(err)
	}
	o.Stdin, o.Stdout, o.Stderr = strings.NewReader(log), out, io.Discard
	return Run(t.Context(), service, o)
}

// reportOf replays a log.
func reportOf(t *testing.T, service build, log string, args ...string) (r report) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t, service, log, &out, append(args, "-format", "json")...); err != nil {
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

// TestOutage: ten minutes without Redis admit what the failure mode says, at the worst time.
func TestOutage(t *testing.T) {
	t.Parallel()
	var requests []sent
	for i := range 600 { // ten a minute for an hour, and forty more in minute 30
		requests = append(requests, sent{time.Duration(i) * 6 * time.Second, 1})
	}
	for i := range 40 {
		requests = append(requests, sent{30*time.Minute + time.Duration(i)*time.Second, 1})
	}
	log, routes := text(requests), write(t, "routes", "GET /orders/{id}\n")
	for mode, want := range map[string]outage{
		"open":   {Requests: 140, Admitted: 140, Beyond: 30},
		"closed": {Requests: 140},
		"local":  {Requests: 140, Admitted: 110},
	} {
		file := write(t, "policies", fmt.Sprintf(`[{"name":"p","limit":"fixed-window 20/1m","candidate":"fixed-window 30/1m","fail":%q}]`, mode))
		r := reportOf(t, nil, log, "-policies", file, "-routes", routes)
		got := r.Policies[0].Outage
		if start := got.Start.Sub(r.Start); start < 21*time.Minute || start > 30*time.Minute {
			t.Errorf("%s: begins after %v, want minute 30 in it", mode, start)
		}
		if candidate := r.Policies[1]; candidate.Outage.Mode != mode {
			t.Errorf("%s: the outage of %s is %s", mode, candidate.Policy, candidate.Outage.Mode)
		}
		want.Mode, want.Start = mode, got.Start
		if got != want {
			t.Errorf("%s: got %+v, want %+v", mode, got, want)
		}
	}
}

// TestDisorder: a log whose clock went back by hours has no conclusion.
func TestDisorder(t *testing.T) {
	t.Parallel()
	day := behaved(100, 10)
	late := text(day[len(day)/2:]) + text(day[:len(day)/2])
	late = strings.ReplaceAll(late, "T00:3", "T07:3")
	file, routes := write(t, "policies", `[{"name":"p","limit":"60/1m"}]`), write(t, "routes", "GET /orders/{id}\n")
	var out bytes.Buffer
	if err := run(t, nil, late, &out, "-policies", file, "-routes", routes); err != nil {
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
	var tiers strings.Builder
	for client := range 1010 {
		fmt.Fprintf(&tiers, "10.0.%d.%d %s\n", client>>8, client&255, []string{"a", "b"}[client%2])
	}
	file := write(t, "policies", `[{"name":"p","key":["user"],"limit":"1/1m","tiers":{"a":"60/1m","b":"60/1m"}}]`)
	r := reportOf(t, nil, log, "-policies", file, "-routes", write(t, "routes", "GET /orders/{id}\n"), "-tiers", write(t, "tiers", tiers.String()))
	if p := r.Policies[0].Proposal; p == nil || strings.Count(p.Code, "Tiers") != 1 || strings.Count(p.Code, "algorithms.TokenBucket") != 2 {
		t.Errorf("got %+v, want one field with both tiers", p)
	}
}

// TestBadChart: a chart that cannot be written does not cost the report.
func TestBadChart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	policies, routes := write(t, "policies", `[{"name":"p","limit":"1/1m"}]`), write(t, "routes", "GET /orders/{id}\n")
	err := run(t, nil, text([]sent{{0, 1}}), &out, "-svg", "/nonexistent/chart.svg", "-policies", policies, "-routes", routes)
	if err == nil || !strings.Contains(out.String(), "1 requests") {
		t.Errorf("got %v and %q, want an error and a report", err, out.String())
	}
}

// TestPoliciesFile: the error reports every mistake of the file.
func TestPoliciesFile(t *testing.T) {
	t.Parallel()
	file := write(t, "policies", `[{"name":"a b","limit":"10","tiers":{"pro":"x"},"fail":"sometimes","typo":1,"routes":["GET /x"],"key":["cookie"]},
		{"name":"p","limit":"1/1m","costs":{"GET /orders/{id}":-1},"charge_if":"401"},{"name":"p","limit":"1/1m"}]`)
	err := run(t, nil, "", io.Discard, "-policies", file, "-routes", write(t, "routes", "GET /orders/{id}\n"))
	for _, want := range []string{`"a b"`, `limit "10"`, "tiers: pro", `"sometimes"`, `"typo"`, `"GET /x"`, `"cookie"`, "a letter", "-1", "charge_if", "is taken"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
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
	file := write(t, "policies", `[
		{"name":"orders","key":["user","address"],"per_route":true,"limit":"fixed-window 6/1m","tiers":{"pro":"fixed-window 16/1m"},"costs":{"GET /orders/{id}":2},"routes":["GET /orders/{id}"]},
		{"name":"login","limit":"fixed-window 3/1m","charge_if":[401],"routes":["POST /login"]},
		{"name":"strays","key":["all"],"limit":"fixed-window 1/1m","routes":["unmatched"]}]`)
	r := reportOf(t, nil, log.String(), "-policies", file, "-routes", write(t, "routes", "GET /orders/{id}\nPOST /login\n"), "-tiers", write(t, "tiers", "bob pro\n"))
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
	if r.Unrouted != 10 || r.Bad != 0 {
		t.Errorf("got %d unmatched requests, want 10", r.Unrouted)
	}
}

// TestRedisMemory: a log in Redis holds the requests of a window, and not all that a key has sent.
func TestRedisMemory(t *testing.T) {
	t.Parallel()
	var requests []sent
	for i := range 1_000 {
		requests = append(requests, sent{time.Duration(i) * 10 * time.Minute, 1})
	}
	file := write(t, "policies", `[{"name":"p","limit":"sliding-window-log 100/1m"}]`)
	got := reportOf(t, nil, text(requests), "-policies", file, "-routes", write(t, "routes", "GET /orders/{id}\n")).Policies[0].Redis.Bytes
	if most := int64(100 + logBytes + 2*logEntry); got > most {
		t.Errorf("got %d bytes, want at most %d", got, most)
	}
}

// TestHead: a HEAD counts as a GET, costs as much, and runs no handler of the service. A route may end in a slash.
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
	if r := reportOf(t, s, log.String()); r.Unrouted != 0 {
		t.Errorf("got %d requests without a route, want none", r.Unrouted)
	}
	policies := write(t, "policies", `[{"name":"p","per_route":true,"limit":"fixed-window 8/1m","costs":{"GET /a":9,"GET /b/":5}}]`)
	for _, p := range reportOf(t, s, log.String(), "-policies", policies).Policies {
		if p.Results[0].Denied != 1 {
			t.Errorf("%s: got %d denied, want 1", p.Route, p.Results[0].Denied)
		}
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
	r := reportOf(t, nil, log.String(), "-policies", write(t, "policies", `[{"name":"p","limit":"1/1m"}]`), "-routes", write(t, "routes", "GET /\n"))
	if got := r.Policies[0].Results[0]; r.Unknown != 3 || got.Requests != 10 || got.Keys != 4 {
		t.Errorf("got %d unknown addresses, %d requests and %d keys, want 3, 10 and 4", r.Unknown, got.Requests, got.Keys)
	}
}

// TestOutput: the table and the chart tell what the report has.
func TestOutput(t *testing.T) {
	t.Parallel()
	file := write(t, "policies", `[{"name":"orders","limit":"20/1m burst 5"}]`)
	svg := write(t, "chart.svg", "")
	var out bytes.Buffer
	err := run(t, nil, text(behaved(100, 10))+"<bad>\n", &out, "-policies", file, "-routes", write(t, "routes", "GET /orders/{id}\n"), "-svg", svg)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"11,200 requests", "1 of 11,201 lines are bad", "<bad>", "token-bucket 20/1m burst 5", "fixed-window 20/1m", "denied most", "ip=10.0.0.100", "candidate := algorithms.TokenBucket(45, time.Minute).WithBurst(12)", "Candidate: &candidate"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in\n%s", want, out.String())
		}
	}
	chart := readAll(t, svg)
	if err := xml.Unmarshal(chart, new(struct{})); err != nil {
		t.Errorf("the chart is no XML: %v", err)
	}
	if bytes.Contains(chart, []byte("href")) || bytes.Count(chart, []byte("<polyline")) != 2 {
		t.Errorf("want a chart with two curves and without links:\n%.2000s", chart)
	}
}

// TestHold: a concurrent limit counts requests while they run.
func TestHold(t *testing.T) {
	t.Parallel()
	e := newEngine(nil)
	m := ratelimit.Must(ratelimit.New(e.limiter, nil, ratelimit.Policy{Name: "p", Key: keyfunc.Const("all"), Limit: algorithms.Concurrent(2, 3*time.Second)}))
	if err := e.serve(m.Handler(http.NotFoundHandler())); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		second, lasts int
		status        int
	}{{100, 10, 0}, {101, 1, 0}, {101, 1, 429}, {102, 30, 0}, {109, 1, 429}, {110, 1, 0}} {
		v, ok := e.decide(&entry{
			Time: int64(tt.second)*micros + 100*micros*864, Duration: time.Duration(tt.lasts) * time.Second,
			Address: "192.0.2.1", Method: "GET", Path: "/", Status: 200,
		})
		if !ok || v.Status != tt.status {
			t.Errorf("request %d: got %d, want %d", i, v.Status, tt.status)
		}
	}
}
