package tests

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

// dial sends text to a server of h, and returns the connection.
func dial(t *testing.T, h http.Handler, text string) net.Conn {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	conn, err := net.DialTimeout("tcp", srv.Listener.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// exchange returns the bytes that answer text, with bare newlines, and without the fields that the server adds.
func exchange(t *testing.T, h http.Handler, text string) string {
	t.Helper()
	answer, err := io.ReadAll(dial(t, h, text))
	if err != nil {
		t.Fatal(err)
	}
	added := regexp.MustCompile(`(?m)^(Date|Content-Length|Connection): .*\r\n`)
	return strings.ReplaceAll(added.ReplaceAllString(string(answer), ""), "\r\n", "\n")
}

// drained returns a limiter whose limit p is used up for the peer of a local server.
func drained(t *testing.T, p ratelimit.Policy) algorithms.Limiter {
	t.Helper()
	memory := newStill(t)
	checks := []algorithms.Check{{Policy: p.Name, Key: "ip=127.0.0.1", Limit: p.Limit, Cost: p.Limit.Burst()}}
	if err := memory.Allow(t.Context(), checks); err != nil || !checks[0].Decision.Allowed {
		t.Fatal(err, checks[0].Decision)
	}
	return memory
}

const denialHead = `HTTP/1.1 429 Too Many Requests
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "default";r=0;t=1
Ratelimit-Policy: "default";q=100;w=60
Retry-After: 1
X-Content-Type-Options: nosniff

`

// TestDenialOnTheWire has the whole answer, byte for byte.
func TestDenialOnTheWire(t *testing.T) {
	p := byIP("default", algorithms.TokenBucket(100, time.Minute))
	for method, want := range map[string]string{
		"GET":  denialHead + quotaExceeded(`,"violated-policies":["default"]`),
		"HEAD": denialHead,
	} {
		h := newMiddleware(t, drained(t, p), &ratelimit.Options{Headers: headers.Draft}, p).Handler(ok)
		if got := exchange(t, h, method+" / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", method, got, want)
		}
	}
}

// unread is a body that must not be touched.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func (u unread) Close() error { return nil }

// refusals has a handler for each status that a request is refused with, whatever its address.
func refusals(t *testing.T) map[int]http.Handler {
	negative, dear, closed := byIP("p", hourly), byIP("p", hourly), modes(algorithms.FailClosed)[0]
	negative.Cost, dear.Cost = costOf(-1), costOf(11)
	o := &ratelimit.Options{Logger: quiet}
	return map[int]http.Handler{
		403: newMiddleware(t, newStill(t), o, byIP("p", algorithms.Nobody())).Handler(ok),
		429: newMiddleware(t, newStill(t), o, dear).Handler(ok),
		401: newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly}).Handler(ok),
		500: newMiddleware(t, newStill(t), o, negative).Handler(ok),
		503: newMiddleware(t, broken(errDown), o, closed).Handler(ok),
	}
}

func TestRefusedBeforeTheBodyIsRead(t *testing.T) {
	for status, h := range refusals(t) {
		r := from("192.0.2.1")
		r.Method, r.Body, r.ContentLength = http.MethodPost, unread{t}, 1<<30
		if got := record(h, r).Code; got != status {
			t.Errorf("got status %d, want %d", got, status)
		}
	}
}

// TestExpectContinue: a client that asks before it sends a large body receives the denial at once, and never a 100.
func TestExpectContinue(t *testing.T) {
	const ask = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n"
	for status, h := range refusals(t) {
		res, err := http.ReadResponse(bufio.NewReader(dial(t, h, ask)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != status || !res.Close {
			t.Errorf("got status %d, connection closed %v, want %d, true", res.StatusCode, res.Close, status)
		}
		if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), `"status":`) {
			t.Errorf("got body %q and error %v, want a problem", body, err)
		}
	}
	reads := newMiddleware(t, newStill(t), nil, byIP("p", hourly)).Handler(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, 1)) }))
	line, err := bufio.NewReader(dial(t, reads, ask)).ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Errorf("got %q and error %v of an admitted request, want 100", line, err)
	}
}

// TestRefusalsAreProblems that caches do not store, even if an outer handler allows it.
func TestRefusalsAreProblems(t *testing.T) {
	for status, h := range refusals(t) {
		w := httptest.NewRecorder()
		for _, name := range []string{"Expires", "ETag", "Last-Modified", "Content-Length", "Cache-Control", "Content-Type"} {
			w.Header().Set(name, "outer")
		}
		h.ServeHTTP(w, from("192.0.2.1"))
		got := w.Header().Clone()
		for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Retry-After", "Www-Authenticate"} {
			got.Del(name)
		}
		const want = "Cache-Control: no-store\nContent-Type: application/problem+json\nX-Content-Type-Options: nosniff\n"
		if w.Code != status || dump(got) != want {
			t.Errorf("got status %d and\n%swant %d and\n%s", w.Code, dump(got), status, want)
		}
	}
}

// TestRefused: a handler of one's own sees the verdict, and the fields are there already.
func TestRefused(t *testing.T) {
	var seen []ratelimit.Verdict
	served := new(counter)
	o := &ratelimit.Options{Refused: func(w http.ResponseWriter, r *http.Request, v ratelimit.Verdict) {
		seen = append(seen, v)
		if _, has := ratelimit.FromContext(r.Context()); has {
			t.Error("got a verdict in the context of a refused request, want it as the argument only")
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, w.Header().Get("Retry-After"))
	}}
	h := newMiddleware(t, newStill(t), o, ratelimit.Policy{Name: "p", Key: apiKey, Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(served)
	record(h, withKeys("good-key"))
	for _, tt := range []struct {
		key    string
		status int
		body   string
	}{{"good-key", 429, "3600"}, {"a b", 400, ""}, {"guess", 401, ""}} {
		w := record(h, withKeys(tt.key))
		v := seen[len(seen)-1]
		if w.Code != http.StatusTeapot || w.Body.String() != tt.body || v.Status != tt.status || v.Allowed {
			t.Errorf("got %d %q and verdict %+v, want its own answer to %d", w.Code, w.Body, v, tt.status)
		}
		if tt.status == 429 && (v.RetryAfter != time.Hour || v.Policies[0].Name != "p" || w.Header().Get("Ratelimit") == "") {
			t.Errorf("got verdict %+v and\n%swant a denial's", v, limits(w.Header()))
		}
	}
	if len(seen) != 3 || served.n.Load() != 1 {
		t.Errorf("got %d refused and %d served, want 3 and 1", len(seen), served.n.Load())
	}
}
