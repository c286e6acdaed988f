// Helpers of the tests: servers without a network, for tests in fake time.

package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/middleware/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const url = "http://api.example.com/"

func newTransport(t testing.TB, base http.RoundTripper, o *client.Options) *client.Transport {
	t.Helper()
	transport, err := client.NewTransport(base, o)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// A script is a server that answers with its responses in turn, and with 200 after them.
// It notes when requests arrived.
type script struct {
	mu        sync.Mutex
	responses []*http.Response
	arrived   []time.Time
	bodies    []string // of requests
	sent      []*body
}

// A body is a response body that notes what becomes of it.
type body struct {
	io.Reader
	read, closed int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *body) Close() error {
	b.closed++
	return nil
}

// response returns a response of lines "Name: value".
func response(status int, lines ...string) *http.Response {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: status, Header: h}
}

func denials(n int, lines ...string) *script {
	s := &script{}
	for range n {
		s.responses = append(s.responses, response(http.StatusTooManyRequests, lines...))
	}
	return s
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if req.Body != nil {
		all, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text = string(all)
		_ = req.Body.Close() // it holds nothing
	}
	s.arrived, s.bodies = append(s.arrived, time.Now()), append(s.bodies, text)
	resp := response(http.StatusOK)
	if len(s.responses) > 0 {
		resp, s.responses = s.responses[0], s.responses[1:]
	}
	b := &body{Reader: strings.NewReader("the body")}
	s.sent = append(s.sent, b)
	resp.Body, resp.Request = b, req
	return resp, nil
}

// gaps returns the times between arrivals.
func (s *script) gaps() (gaps []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.arrived); i++ {
		gaps = append(gaps, s.arrived[i].Sub(s.arrived[i-1]))
	}
	return gaps
}

// A handler is a server without a network.
type handler struct {
	http.Handler
	latency time.Duration
}

func (h handler) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(h.latency / 2)
	in := req.Clone(req.Context())
	in.RemoteAddr = "192.0.2.1:1234"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	time.Sleep(h.latency - h.latency/2)
	return w.Result(), req.Context().Err()
}

func get(t testing.TB, ctx context.Context) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// send sends a request that must not fail, and closes the response.
func send(t testing.TB, transport http.RoundTripper, req *http.Request) *http.Response {
	t.Helper()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp
}

// An eventLog is an Observer that keeps the kinds of events.
type eventLog struct {
	mu     sync.Mutex
	events []client.Event
}

func (l *eventLog) Observe(_ context.Context, e client.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *eventLog) kinds() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kinds []string
	for _, e := range l.events {
		kind := e.Kind.String()
		if e.Reason != "" {
			kind += "_" + e.Reason
		}
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}
