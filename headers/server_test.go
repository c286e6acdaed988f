package headers_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// deny answers as a middleware does, with a body that names the policies that
// deny.
func deny(d headers.Dialect, resp headers.Response, policies ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		d.Write(h, resp)
		h.Set("Content-Type", "application/problem+json")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, problem, strings.Join(policies, `","`)) // the client may be gone
	}
}

// exchange sends one HTTP/1.1 request and returns the bytes of the answer, with
// bare newlines, and without the fields that the server adds.
func exchange(t *testing.T, handler http.Handler, method string) string {
	t.Helper()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	conn, err := net.DialTimeout("tcp", srv.Listener.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, method+" / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	added := regexp.MustCompile(`(?m)^(Date|Content-Length|Connection): .*\r\n`)
	return strings.ReplaceAll(added.ReplaceAllString(string(answer), ""), "\r\n", "\n")
}

const e4Head = `HTTP/1.1 429 Too Many Requests
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "default";r=2;t=2
Ratelimit-Policy: "default";q=100;w=60
Retry-After: 2
X-Content-Type-Options: nosniff

`

const problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
	`"title":"Quota Exceeded","status":429,"violated-policies":["%s"]}`

var e4Body = fmt.Sprintf(problem, "default")

// TestServerE4 has the whole answer, byte for byte from a connection.
func TestServerE4(t *testing.T) {
	p := bucket(t, "default", 100, time.Minute)
	if got, want := exchange(t, deny(headers.Draft, denied(e4(p)), "default"), "POST"), e4Head+e4Body; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// W28: HEAD has the header and no body.
	if got, want := exchange(t, deny(headers.Draft, denied(e4(p)), "default"), "HEAD"), e4Head; got != want {
		t.Errorf("HEAD: got\n%s\nwant\n%s", got, want)
	}
	// Cost above q: no Retry-After, no t.
	never := denied(headers.State{Quota: p, Denied: true, Remaining: 42, RetryAfter: headers.Never})
	want := strings.NewReplacer("r=2;t=2", "r=42", "Retry-After: 2\n", "").Replace(e4Head + e4Body)
	if got := exchange(t, deny(headers.Draft, never, "default"), "POST"); got != want {
		t.Errorf("never: got\n%s\nwant\n%s", got, want)
	}
}

// TestServerProtocols has W28: HTTP/2 carries the same as HTTP/1.1.
func TestServerProtocols(t *testing.T) {
	p, hourly := bucket(t, "default", 100, time.Minute), window(t, "hourly", 1000, time.Hour)
	resp := denied(e4(p), headers.State{Quota: hourly, Denied: true, RetryAfter: time.Minute})
	handler := deny(headers.Draft|headers.SeparateFields|headers.XRateLimit, resp, "default", "hourly")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		one, two := fetch(t, handler, method, 1), fetch(t, handler, method, 2)
		if one != two {
			t.Errorf("%s: HTTP/1.1 has\n%s\nHTTP/2 has\n%s", method, one, two)
		}
		const want = `Ratelimit: "default";r=2;t=2, "hourly";r=0;t=60`
		if !strings.Contains(one, want+"\n") {
			t.Errorf("%s: got\n%s\nwant %s", method, one, want)
		}
		if hasBody := strings.Contains(one, "violated-policies"); hasBody == (method == http.MethodHead) {
			t.Errorf("%s: got body %v", method, hasBody)
		}
	}
}

// fetch returns the answer over the given major version of HTTP, without Date.
func fetch(t *testing.T, handler http.Handler, method string, major int) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.EnableHTTP2 = major == 2
	srv.StartTLS()
	defer srv.Close()
	client := srv.Client()
	client.Timeout = time.Minute
	if major == 1 {
		client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.ProtoMajor != major || res.StatusCode != http.StatusTooManyRequests || len(res.Trailer) > 0 {
		t.Errorf("got HTTP/%d, status %d, trailer %v", res.ProtoMajor, res.StatusCode, res.Trailer)
	}
	res.Header.Del("Date")
	return dump(res.Header) + string(body)
}

// TestServerInterim makes sure that an informational response and a redirect
// carry the fields once each, the limiter having written them before.
func TestServerInterim(t *testing.T) {
	p := bucket(t, "default", 100, time.Minute)
	got := exchange(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		headers.Draft.Write(w.Header(), admitted(headers.State{Quota: p, UnitAfter: 600 * ms}))
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusSeeOther)
	}), "POST")
	const fields = "Ratelimit: \"default\";r=0;t=1\nRatelimit-Policy: \"default\";q=100;w=60\n"
	const want = "HTTP/1.1 103 Early Hints\n" + fields + "\nHTTP/1.1 303 See Other\nLocation: /elsewhere\n" + fields + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
