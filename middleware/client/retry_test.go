// Which requests a Transport sends again, how often, and what becomes of bodies.

package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// TestRepeatable: only idempotent methods are retried, others if the options say so, and
// no body that cannot be rewound.
func TestRepeatable(t *testing.T) {
	const once, again = 1, 2
	body := func() io.Reader { return strings.NewReader("the question") }
	stream := func() io.Reader { return io.NopCloser(body()) } // without GetBody
	none := func() io.Reader { return nil }
	keyed := &client.Options{Retry: func(req *http.Request) bool { return req.Header.Get("Idempotency-Key") != "" }}
	anyMethod := &client.Options{Retry: func(*http.Request) bool { return true }}
	tests := []struct {
		method string
		body   func() io.Reader
		key    string
		o      *client.Options
		want   int
	}{
		{"GET", none, "", nil, again}, {"HEAD", none, "", nil, again}, {"OPTIONS", none, "", nil, again}, {"TRACE", none, "", nil, again},
		{"", none, "", nil, again}, {"DELETE", none, "", nil, again}, {"PUT", body, "", nil, again}, {"GET", body, "", nil, again},
		{"PUT", stream, "", nil, once}, {"GET", stream, "", nil, once}, {"POST", none, "", nil, once}, {"POST", body, "", nil, once},
		{"PATCH", body, "", nil, once}, {"get", none, "", nil, once}, {"POST", body, "Idempotency-Key", nil, once},
		{"POST", body, "Idempotency-Key", keyed, again}, {"PATCH", none, "Idempotency-Key", keyed, again}, {"POST", body, "", keyed, once},
		{"POST", stream, "Idempotency-Key", keyed, once}, {"GET", none, "", keyed, once},
		{"POST", body, "", anyMethod, again}, {"POST", none, "", anyMethod, again}, {"POST", stream, "", anyMethod, once},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			s := denials(1)
			req, err := http.NewRequest(tt.method, url, tt.body())
			if err != nil {
				t.Fatal(err)
			}
			req.Method = tt.method // NewRequest makes it GET
			if tt.key != "" {
				req.Header.Set(tt.key, "7")
			}
			send(t, newTransport(t, s, tt.o), req)
			if len(s.arrived) != tt.want {
				t.Errorf("%q, key %q: got %d requests, want %d", tt.method, tt.key, len(s.arrived), tt.want)
			}
			for _, got := range s.bodies {
				if tt.body() != nil && got != "the question" {
					t.Errorf("%q: got the bodies %q", tt.method, s.bodies)
				}
			}
		})
	}
}

// TestStatuses: which statuses are retried.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]int{200: 1, 301: 1, 401: 1, 403: 1, 404: 1, 413: 1, 429: 2, 500: 1, 502: 1, 503: 2} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{responses: []*http.Response{response(status, "Retry-After: 1")}}
			send(t, newTransport(t, s, nil), get(t, context.Background()))
			if len(s.arrived) != want {
				t.Errorf("%d: got %d requests, want %d", status, len(s.arrived), want)
			}
			s = &script{responses: []*http.Response{response(status, "Retry-After: 1")}}
			statuses := []int{403, 500}
			transport := newTransport(t, s, &client.Options{Statuses: statuses})
			statuses[0] = 404 // is not read any more
			send(t, transport, get(t, context.Background()))
			if again := status == 403 || status == 500; (len(s.arrived) == 2) != again {
				t.Errorf("%d of 403 and 500: got %d requests", status, len(s.arrived))
			}
			s = &script{responses: []*http.Response{response(status)}}
			send(t, newTransport(t, s, &client.Options{Statuses: []int{403, 413, 500}}), get(t, context.Background()))
			if (len(s.arrived) == 2) != (status == 500) {
				t.Errorf("%d without a wait, of 403, 413 and 500: got %d requests", status, len(s.arrived))
			}
		})
	}
}

// TestAttempts: the last response is returned unread, and the earlier ones are drained
// and closed.
func TestAttempts(t *testing.T) {
	for attempts, want := range map[int]int{1: 1, 2: 2, 7: 7} {
		synctest.Test(t, func(t *testing.T) {
			s := denials(9, "Retry-After: 1")
			resp, err := newTransport(t, s, &client.Options{Attempts: attempts}).RoundTrip(get(t, context.Background()))
			if err != nil || resp.StatusCode != http.StatusTooManyRequests || len(s.sent) != want {
				t.Fatalf("%d: got %v, %v after %d requests, want %d", attempts, resp, err, len(s.sent), want)
			}
			for i, b := range s.sent {
				last := i == want-1
				if last && (b.closed != 0 || b.read != 0) || !last && (b.closed == 0 || b.read != len("the body")) {
					t.Errorf("%d: body %d: closed %d times, %d bytes read", attempts, i, b.closed, b.read)
				}
			}
		})
	}
}

// TestDrainIsBounded: neither a long nor a slow body of a denial holds up the retry.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := &body{Reader: strings.NewReader(strings.Repeat("x", 1<<20))}
		slow, silent := io.Pipe()
		defer silent.Close()
		bodies := []io.ReadCloser{long, slow, http.NoBody}
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			resp := response(http.StatusTooManyRequests, "Retry-After: 5")
			resp.Body, bodies = bodies[0], bodies[1:]
			return resp, nil
		}), &client.Options{Attempts: 3})
		begun := time.Now()
		send(t, transport, get(t, context.Background()))
		if got := time.Since(begun); got > 12*time.Second {
			t.Errorf("got two waits of %v, want 10 s and the random part", got)
		}
		if long.read > 64<<10+512 || long.closed == 0 {
			t.Errorf("read %d bytes, closed %d times", long.read, long.closed)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestErrors: an error of the base is the caller's, at once, and a body that cannot be
// rewound leaves the denial.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, calls := errors.New("connection reset"), 0
		transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
			calls++
			return nil, broken
		}), nil)
		if _, err := transport.RoundTrip(get(t, context.Background())); !errors.Is(err, broken) || calls != 1 {
			t.Errorf("got %v after %d calls", err, calls)
		}
		s, events := denials(1, "Retry-After: 1"), &eventLog{}
		req, err := http.NewRequest(http.MethodPut, url, bytes.NewReader([]byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		resp := send(t, newTransport(t, s, &client.Options{Observers: []client.Observer{events}}), req)
		if resp.StatusCode != http.StatusTooManyRequests || s.sent[0].read != 0 || events.kinds() != "registered sent gave_up_request" {
			t.Errorf("got %d, %d bytes read, %s", resp.StatusCode, s.sent[0].read, events.kinds())
		}
	})
}

// TestRequestIsNotChanged: a RoundTripper must not modify the request.
func TestRequestIsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, err := http.NewRequest(http.MethodPut, url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		before := *req
		send(t, newTransport(t, denials(3), nil), req)
		if req.Body != before.Body || req.URL != before.URL || len(req.Header) != 0 {
			t.Errorf("got %+v, want %+v", *req, before)
		}
	})
}

// TestCloseIdleConnections: http.Client reaches the base through the Transport.
func TestCloseIdleConnections(t *testing.T) {
	base := &closer{}
	c := &http.Client{Transport: newTransport(t, base, nil)}
	c.CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("closed %d times", base.closed)
	}
	c.Transport = newTransport(t, &script{}, nil)
	c.CloseIdleConnections() // of a base that has none
}

type closer struct {
	script
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }
