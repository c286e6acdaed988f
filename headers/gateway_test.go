package headers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// limitFields are all fields of the dialects.
var limitFields = []string{
	"Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After",
}

// limiting returns a limiter that admits every request to next.
func limiting(d headers.Dialect, resp headers.Response, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Write(w.Header(), resp)
		next.ServeHTTP(w, r)
	})
}

// behind returns a ReverseProxy of a server with the handler.
func behind(t *testing.T, h http.HandlerFunc) *httputil.ReverseProxy {
	t.Helper()
	upstream := httptest.NewServer(h)
	t.Cleanup(upstream.Close)
	u, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
}

// TestGateway: in all dialects, a response has one line of each field, of the limit that is nearer. An upstream's denial
// keeps its fields alone.
func TestGateway(t *testing.T) {
	near, far := bucket(t, "near", 3, time.Hour), bucket(t, "far", 100, time.Minute)
	now := time.Now().Truncate(time.Second)
	at := func(q *headers.Quota, left int64) headers.Response {
		return headers.Response{Quotas: []*headers.Quota{q}, States: []headers.State{{Quota: q, Remaining: left, ResetAfter: time.Minute}}, Now: now}
	}
	denial := at(near, 0)
	denial.Denied, denial.RetryAfter, denial.States[0].Denied, denial.States[0].RetryAfter = true, 20*time.Minute, true, 20*time.Minute
	for d := range headers.Dialect(8) {
		for _, tt := range []struct {
			name      string
			own, sent headers.Response
			status    int
			want      headers.Response
		}{
			{"the upstream is nearer", at(far, 99), at(near, 2), 200, at(near, 2)},
			{"the gateway is nearer", at(near, 1), at(far, 50), 200, at(near, 1)},
			{"equal shares", at(far, 50), at(newQuota(t, headers.QuotaConfig{Name: "x", Limit: 2, Requests: 2, Window: time.Hour}), 1), 200, at(far, 50)},
			{"an error of the upstream", at(far, 99), at(near, 2), 500, at(near, 2)},
			{"the upstream denies", at(near, 0), denial, 429, denial},
			{"the upstream has no capacity", at(near, 0), denial, 503, denial},
			{"no limiter in the upstream", at(near, 1), headers.Response{}, 200, at(near, 1)},
		} {
			proxy := behind(t, func(w http.ResponseWriter, _ *http.Request) {
				d.Write(w.Header(), tt.sent)
				w.WriteHeader(tt.status)
			})
			w := httptest.NewRecorder()
			limiting(d, tt.own, headers.Gateway(proxy)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			want := write(d, tt.want)
			for _, key := range limitFields {
				if got := w.Result().Header[key]; !slices.Equal(got, want[key]) {
					t.Errorf("%v, %s: %s: got %q, want %q", d, tt.name, key, got, want[key])
				}
			}
		}
	}
}

// TestGatewayOfForeignFields: upstreams send other versions, other dialects, or what cannot be read.
func TestGatewayOfForeignFields(t *testing.T) {
	const own = `Ratelimit="api";r=50;t=30 Ratelimit-Limit=100 Ratelimit-Policy="api";q=100;w=60 Ratelimit-Remaining=50 Ratelimit-Reset=30 `
	for name, tt := range map[string]struct {
		status int
		sent   string // field=value|field=value
		want   string
	}{
		"draft 06, nearer":           {200, "RateLimit-Limit=60|RateLimit-Remaining=0|RateLimit-Reset=42", "Ratelimit-Limit=60 Ratelimit-Remaining=0 Ratelimit-Reset=42 "},
		"draft 07, nearer":           {200, "RateLimit=limit=100, remaining=1, reset=5", "Ratelimit=limit=100, remaining=1, reset=5 "},
		"draft 07, farther":          {200, "RateLimit=limit=100, remaining=99, reset=5", own},
		"no limit, fewer left":       {200, "RateLimit-Remaining=49", "Ratelimit-Remaining=49 "},
		"no limit, more left":        {200, "RateLimit-Remaining=51", own},
		"unreadable":                 {200, "RateLimit=(((|RateLimit-Remaining=few", own},
		"another dialect":            {200, "X-RateLimit-Limit=60|X-RateLimit-Remaining=0|X-RateLimit-Reset=9", own + "X-Ratelimit-Limit=60 X-Ratelimit-Remaining=0 X-Ratelimit-Reset=9 "},
		"a denial, no numbers":       {429, "Retry-After=42", `Ratelimit-Policy="api";q=100;w=60 Retry-After=42 `},
		"a denial, another dialect":  {429, "Retry-After=42|X-RateLimit-Remaining=0", `Ratelimit-Policy="api";q=100;w=60 Retry-After=42 X-Ratelimit-Remaining=0 `},
		"maintenance":                {503, "Retry-After=42", `Ratelimit-Policy="api";q=100;w=60 Retry-After=42 `},
		"an outage of the upstream":  {503, "", own},
		"names of private dialects":  {200, "Anthropic-RateLimit-Requests-Remaining=0", "Anthropic-Ratelimit-Requests-Remaining=0 " + own},
		"several limits of upstream": {200, `RateLimit="a";r=90;t=1, "b";r=1;t=9|RateLimit-Policy="a";q=100;w=9, "b";q=100;w=9`, `Ratelimit="a";r=90;t=1, "b";r=1;t=9 Ratelimit-Policy="a";q=100;w=9, "b";q=100;w=9 `},
	} {
		q := window(t, "api", 100, time.Minute)
		resp := headers.Response{Quotas: []*headers.Quota{q}, States: []headers.State{{Quota: q, Remaining: 50, ResetAfter: 30 * time.Second}}}
		w := httptest.NewRecorder()
		limiting(0, resp, headers.Gateway(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for pair := range strings.SplitSeq(tt.sent, "|") {
				if field, value, ok := strings.Cut(pair, "="); ok {
					w.Header().Add(field, value) // as a ReverseProxy does
				}
			}
			w.WriteHeader(tt.status)
		}))).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var got strings.Builder
		for _, key := range slices.Sorted(mapKeys(w.Result().Header)) {
			fmt.Fprintf(&got, "%s=%s ", key, strings.Join(w.Result().Header[key], " AND "))
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %s, want %s", name, got.String(), tt.want)
		}
	}
}

func mapKeys(h http.Header) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range h {
			if !yield(key) {
				return
			}
		}
	}
}

// TestGatewayWays: the fields are there on each way to begin a response, also after a 103, which makes a ReverseProxy clear
// the header, and none before a panic.
func TestGatewayWays(t *testing.T) {
	q := bucket(t, "api", 100, time.Minute)
	resp := headers.Response{Quotas: []*headers.Quota{q}, States: []headers.State{{Quota: q, Remaining: 99}}}
	for name, h := range map[string]http.HandlerFunc{
		"nothing":   func(http.ResponseWriter, *http.Request) {},
		"a body":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") },
		"a flush":   func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"a Flusher": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			clear(w.Header())
			w.WriteHeader(http.StatusOK)
		},
		"a hijack": func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			(&http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: w.Header()}).Write(buf)
			buf.Flush()
		},
	} {
		server := httptest.NewServer(limiting(0, resp, headers.Gateway(h)))
		got, err := http.Get(server.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.Body.Close()
		if lines := got.Header["Ratelimit-Remaining"]; len(lines) != 1 || lines[0] != "99" {
			t.Errorf("%s: got %q, want 99 once", name, lines)
		}
		server.Close()
	}
}

// TestGatewayOfAnUpgrade: a WebSocket passes through.
func TestGatewayOfAnUpgrade(t *testing.T) {
	proxy := behind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, _ := buf.ReadString('\n')
		_, _ = io.WriteString(conn, line)
	})
	q := bucket(t, "api", 100, time.Minute)
	resp := headers.Response{Quotas: []*headers.Quota{q}, States: []headers.State{{Quota: q, Remaining: 99}}}
	gateway := httptest.NewServer(limiting(0, resp, headers.Gateway(proxy)))
	defer gateway.Close()
	conn, err := net.Dial("tcp", gateway.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	buf := bufio.NewReader(conn)
	got, err := http.ReadResponse(buf, nil)
	if err != nil || got.StatusCode != http.StatusSwitchingProtocols || got.Header.Get("RateLimit-Remaining") != "99" {
		t.Fatalf("got %+v, %v, want 101 with 99 remaining", got, err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := buf.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("got %q, %v, want the echo", line, err)
	}
}
