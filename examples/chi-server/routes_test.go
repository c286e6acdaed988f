// Tests of the routes and their limits.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// An attempt is a request, and its status while the limit admits it.
type attempt struct {
	line, body string
	status     int
}

const (
	right = `{"user":"demo","password":"demo"}`
	wrong = `{"user":"demo","password":"guess"}`
)

// Clients are header fields that identify a client. Requests take the fields of a list in turn. All fields of a list are
// one client.
var (
	free = [][]string{{"X-API-Key", "demo-free"}, {"Authorization", "Bearer demo-free"}, {"authorization", "bearer demo-free"}}
	rich = [][]string{{"X-API-Key", "demo-enterprise"}, {"Authorization", "Bearer demo-enterprise"}}
	peer = [][]string{nil, {"X-API-Key", "demo-pro"}, {"X-API-Key", "guess"}, {"X-Forwarded-For", "192.0.2.1"}}
)

// A route is a row of the table of routes.
type route struct {
	name     string
	policies string // RateLimit-Policy
	client   [][]string
	attempts []attempt     // in turn; all share one bucket
	admits   int           // at once
	another  time.Duration // the time after which the limit may admit one more
}

var routes = []route{
	{
		"orders", `"orders";q=10;w=10`, free,
		[]attempt{{"GET /v1/orders/1", "", 200}, {"GET /v1/orders/2", "", 200}}, 10, time.Second,
	},
	{
		"search", `"search";q=30;w=60`, free,
		[]attempt{{"GET /v1/search?q=a", "", 200}, {"GET /v1/search?deep=0", "", 200}}, 30, 2 * time.Second,
	},
	{
		"deep search", `"search";q=30;w=60`, rich,
		[]attempt{{"GET /v1/search?deep=1", "", 200}, {"GET /v1/search", "", 200}}, 10, 2 * time.Second,
	},
	{"reports", `"reports";q=20;w=60`, free, []attempt{{"GET /v1/reports", "", 200}}, 20, time.Minute},
	{
		"login", `"login";q=5;w=60`, peer,
		[]attempt{{"POST /v1/login", wrong, 401}, {"POST /v1/login", "", 401}}, 5, time.Minute,
	},
	{"charges", `"charges-merchant";q=10;w=6`, free, []attempt{{"POST /v1/charges", "", 200}}, 10, 600 * time.Millisecond},
	{
		"unmatched", `"unmatched";q=60;w=60`, peer,
		[]attempt{{"GET /nothing", "", 404}, {"POST /v1/orders/1", "", 405}, {"DELETE /v1/nothing", "", 404}}, 60, time.Second,
	},
}

func TestRoutes(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		for _, r := range routes {
			t.Run(r.name, func(t *testing.T) {
				admitted, most, denial := r.exhaust(t, s)
				if admitted < r.admits || admitted > most {
					t.Errorf("got %d requests admitted, want %d (%d with the units that came back meanwhile)", admitted, r.admits, most)
				}
				r.checkDenial(t, denial)
			})
		}
		for range 100 {
			r := s.send(t, "GET /healthz", "")
			if r.status != http.StatusOK || r.limitFields() != nil {
				t.Fatalf("/healthz: got %d with %v, want 200 without limits", r.status, r.limitFields())
			}
		}
	})
}

// exhaust sends requests until one is denied. It returns how many were admitted, and how many the limit may admit.
func (r *route) exhaust(t *testing.T, s *server) (admitted, most int, denial reply) {
	t.Helper()
	began := time.Now()
	for ; admitted < 1000; admitted++ {
		a := r.attempts[admitted%len(r.attempts)]
		denial = s.send(t, a.line, a.body, r.client[admitted%len(r.client)]...)
		if denial.status == http.StatusTooManyRequests {
			break
		}
		if got := denial.header.Get("RateLimit-Policy"); denial.status != a.status || got != r.policies {
			t.Fatalf("%s: got %d and %q, want %d and %q", a.line, denial.status, got, a.status, r.policies)
		}
	}
	return admitted, r.most(began, time.Now()), denial
}

// most returns how many attempts the limit may admit in a time.
func (r *route) most(began, ended time.Time) int {
	if r.name == "reports" { // of a window of the clock
		return r.admits * (1 + int(ended.Truncate(time.Minute).Sub(began.Truncate(time.Minute))/time.Minute))
	}
	return r.admits + int(ended.Sub(began)/r.another)
}

func (r *route) checkDenial(t *testing.T, denial reply) {
	t.Helper()
	policy := strings.Split(r.policies, `"`)[1]
	body := fmt.Sprintf(`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",`+
		`"title":"Quota Exceeded","status":429,"violated-policies":[%q]}`, policy)
	if denial.body != body {
		t.Errorf("got %s, want %s", denial.body, body)
	}
	if got := denial.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("got Content-Type %q, want application/problem+json", got)
	}
	if got := denial.header.Get("RateLimit-Policy"); got != r.policies {
		t.Errorf("got RateLimit-Policy %q, want %q", got, r.policies)
	}
	// At most a window and its jitter, or two windows of a sliding limit.
	if wait, err := strconv.Atoi(denial.header.Get("Retry-After")); err != nil || wait < 1 || wait > 120 {
		t.Errorf("got Retry-After %q, want seconds", denial.header.Get("Retry-After"))
	}
}

// TestBuckets: each client has a bucket of its own on each route.
func TestBuckets(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		clients := [][]string{nil, {"X-API-Key", "demo-free"}, {"X-API-Key", "demo-pro"}, {"X-API-Key", "demo-enterprise"}}
		tests := []struct {
			line    string
			left    int
			clients [][]string
		}{
			{"GET /v1/orders/1", 9, clients},
			{"GET /v1/search", 29, clients},
			{"GET /v1/reports", 19, clients},
			{"POST /v1/sms", 4, clients},
			{"POST /v1/login", 4, clients[:1]},
			{"GET /nothing", 59, clients[:1]},
		}
		for _, tt := range tests {
			for _, client := range tt.clients {
				if r := s.send(t, tt.line, "", client...); r.left() != tt.left {
					t.Errorf("%s of %v: got %d left, want %d", tt.line, client, r.left(), tt.left)
				}
			}
		}
	})
}

// TestSMS: a queue of five, with one message every half second.
func TestSMS(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		const sent = 16
		s := start(t, args...)
		var (
			wg     sync.WaitGroup
			mu     sync.Mutex
			served []time.Duration
			denied []reply
		)
		began := time.Now()
		for i := range sent {
			wg.Go(func() {
				r := s.send(t, "POST /v1/sms", "", free[i%len(free)]...)
				mu.Lock()
				defer mu.Unlock()
				if r.status == http.StatusTooManyRequests {
					denied = append(denied, r)
					return
				}
				if got, want := r.header.Get("RateLimit-Policy"), `"sms";q=5;w=3`; r.status != http.StatusOK || got != want {
					t.Errorf("got %d and %q, want 200 and %q", r.status, got, want)
				}
				served = append(served, time.Since(began))
			})
		}
		wg.Wait()
		// On a slow machine the queue moves while requests arrive.
		if len(served) < 5 || len(denied) == 0 {
			t.Errorf("got %d served and %d denied, want 5 and %d", len(served), len(denied), sent-5)
		}
		slices.Sort(served)
		for i, after := range served {
			if turn := time.Duration(i) * 500 * time.Millisecond; after < turn {
				t.Errorf("got request %d served after %v, want %v or later", i, after, turn)
			}
		}
		for _, r := range denied {
			(&route{policies: `"sms";q=5;w=3`}).checkDenial(t, r)
		}
	})
}

// TestLogin: only the demo's user logs in.
func TestLogin(t *testing.T) {
	t.Parallel()
	tests := []struct {
		body   string
		status int
	}{
		{right, http.StatusOK},
		{wrong, http.StatusUnauthorized},
		{`{"user":"guess","password":"demo"}`, http.StatusUnauthorized},
		{`{}`, http.StatusUnauthorized},
		{"null", http.StatusBadRequest},
		{"", http.StatusUnauthorized},
		{"user=demo&password=demo", http.StatusBadRequest},
		{`{"user":"demo","User":"root","password":"demo"}`, http.StatusBadRequest}, // of which account?
		{`{"user":"demo","filler":"` + strings.Repeat("a", 2000) + `","password":"demo"}`, http.StatusUnauthorized},
	}
	for _, tt := range tests {
		s := start(t)
		if r := s.send(t, "POST /v1/login", tt.body); r.status != tt.status || r.status != http.StatusBadRequest && r.left() != 4 {
			t.Errorf("%.60q: got %d and %d left, want %d and 4", tt.body, r.status, r.left(), tt.status)
		}
	}
}

// TestLoginsOfAnAccount: many addresses that guess one password are stopped, and no header tells it to anybody else.
func TestLoginsOfAnAccount(t *testing.T) {
	t.Parallel()
	s := start(t, "-trusted-proxies", "127.0.0.0/8")
	try := func(i int, body string) reply {
		return s.send(t, "POST /v1/login", body, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
	}
	for i := range 100 {
		if r := try(i, wrong); r.status != http.StatusUnauthorized || r.left() != 4 {
			t.Fatalf("guess %d: got %d and %d left, want 401 and 4", i, r.status, r.left())
		}
	}
	if r := try(200, right); r.status != http.StatusTooManyRequests || strings.Contains(r.body, "account") {
		t.Errorf("the account: got %d %s, want 429 and no word of it", r.status, r.body)
	}
	if r := try(201, `{"user":"root","password":"guess"}`); r.status != http.StatusUnauthorized {
		t.Errorf("another account: got %d, want 401", r.status)
	}
}

// TestLoginsThatSucceed: successful logins do not count, however many there are.
func TestLoginsThatSucceed(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		for i := range 20 {
			if r := s.login(t, right); r.status != http.StatusOK {
				t.Fatalf("login %d: got %d, want 200", i, r.status)
			}
			s.settled(t, 3*(i+1)) // one of each policy
		}
		for i := range 6 {
			want := http.StatusUnauthorized
			if i == 5 {
				want = http.StatusTooManyRequests
			}
			if r := s.login(t, wrong); r.status != want {
				t.Errorf("wrong password %d: got %d, want %d", i, r.status, want)
			}
		}
	})
}

// login tries again while Redis is late, because the server then refuses logins. Redis is late on a busy machine.
func (s *server) login(t *testing.T, body string) reply {
	t.Helper()
	var r reply
	redistest.Until(t, "a login is answered", func() bool {
		r = s.send(t, "POST /v1/login", body)
		return r.status != http.StatusServiceUnavailable
	})
	return r
}

// TestCompletions: unused tokens of a reservation come back, and tokens beyond it are charged.
func TestCompletions(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		key, used := []string{"X-API-Key", "demo-free"}, 0
		for i, tt := range []struct {
			asks, uses, settlements int
		}{{100, 75, 1}, {500, 375, 2}, {666, 500, 2}, {5_000, 3_750, 6}, {1, 1, 7}} {
			r := s.send(t, "POST /v1/completions", fmt.Sprintf(`{"max_tokens":%d}`, tt.asks), key...)
			if want := fmt.Sprintf(`{"used":%d}`, tt.uses) + "\n"; r.status != http.StatusOK || r.body != want {
				t.Fatalf("got %d and %s, want 200 and %s", r.status, r.body, want)
			}
			if least := 10_000 - used - 500; r.left() < least || r.left() > least+500 { // a token comes back each 6 ms
				t.Errorf("completion %d: got %d left, want a little more than %d", i, r.left(), least)
			}
			used += tt.uses
			s.settled(t, tt.settlements)
		}
		for body, want := range map[string]int{`{}`: 400, `{"max_tokens":10001}`: 400, `{"max_tokens":-1}`: 400, "": 400} {
			if r := s.send(t, "POST /v1/completions", body, key...); r.status != want {
				t.Errorf("%q: got %d, want %d", body, r.status, want)
			}
		}
		if r := s.send(t, "POST /v1/completions", `{"max_tokens":1}`); r.status != http.StatusUnauthorized {
			t.Errorf("without a key: got %d, want 401", r.status)
		}
	})
}

// TestAllow: a 405 lists the allowed methods (RFC 9110, section 15.5.6).
func TestAllow(t *testing.T) {
	t.Parallel()
	s := start(t)
	for line, want := range map[string]string{
		"POST /v1/orders/1": "GET, HEAD", "DELETE /healthz": "GET, HEAD", "OPTIONS /": "GET, HEAD", "GET /v1/login": "POST", "HEAD /v1/login": "POST",
	} {
		r := s.send(t, line, "")
		if got := strings.Join(r.header.Values("Allow"), ", "); r.status != http.StatusMethodNotAllowed || got != want {
			t.Errorf("%s: got %d and Allow %q, want 405 and %q", line, r.status, got, want)
		}
	}
}

// TestHead: a HEAD is answered as a GET, and charged to the same limit.
func TestHead(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/", "/favicon.ico", "/demo/main.js", "/demo/routes", "/healthz", "/metrics", "/status"} {
		get, head := s.send(t, "GET "+path, ""), s.send(t, "HEAD "+path, "")
		if head.status != 200 || head.body != "" || head.limitFields() != nil || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s: got %d %v %q, want 200 and the header of a GET", path, head.status, head.header, head.body)
		}
	}
	for i, line := range []string{"GET /v1/orders/1", "HEAD /v1/orders/1", "HEAD /v1/orders/2"} {
		if r := s.send(t, line, ""); r.status != 200 || r.left() < 9-i || r.left() > 9 || i > 0 && r.left() == 9 {
			t.Errorf("%s: got %d and %d left, want 200 and %d", line, r.status, r.left(), 9-i)
		}
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(s.send(t, "POST /demo/sandboxes", `{"limit":"1/1s"}`).body), &made); err != nil {
		t.Fatal(err)
	}
	if r := s.send(t, "HEAD /demo/sandboxes/"+made.ID+"/events", ""); r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of a stream: got %d %v, want 200 at once", r.status, r.header)
	}
}

// TestOptionsOfTheServer: OPTIONS * has the limit of requests that no route serves.
func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for i := range 100 {
		if _, err := fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode == http.StatusTooManyRequests && i >= 60 {
			return
		}
		if got := r.Header.Get("RateLimit-Policy"); r.StatusCode != http.StatusNoContent || r.Header.Get("Allow") == "" || got != `"unmatched";q=60;w=60` {
			t.Fatalf("request %d: got %d %v, want 204 and Allow, charged to unmatched", i, r.StatusCode, r.Header)
		}
	}
	t.Error("got 100 answers, want one denied")
}
