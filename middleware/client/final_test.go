// Denials after which no retry helps.

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

// TestFinal: a denial that the server or the caller calls final ends the retries. If it states no wait, no other request
// waits.
func TestFinal(t *testing.T) {
	byBody := func(resp *http.Response) bool {
		text, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(text))
		return err == nil && strings.Contains(string(text), "the body")
	}
	never := func(*http.Response) bool { return false }
	for _, tt := range []struct {
		line  string
		final func(*http.Response) bool
		want  bool
	}{
		{"X-Should-Retry: false", nil, true}, {"X-Should-Retry: False", nil, true}, {"Stripe-Should-Retry: false", never, true},
		{"X-Should-Retry: true", nil, false}, {"X-Should-Retry: ", nil, false}, {"Retry: false", nil, false},
		{"X-Should-Retry: true", byBody, true}, {"Server: x", never, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, events := denials(1, tt.line), &eventLog{}
			transport := newTransport(t, s, &client.Options{Final: tt.final, Observers: []client.Observer{events}})
			resp, err := transport.RoundTrip(get(t, context.Background()))
			if err != nil || (resp.StatusCode == http.StatusTooManyRequests) != tt.want {
				t.Fatalf("%s: got %v, %v, final %v", tt.line, resp, err, tt.want)
			}
			if text, err := io.ReadAll(resp.Body); string(text) != "the body" || err != nil {
				t.Errorf("%s: got the body %q, %v", tt.line, text, err)
			}
			if !tt.want {
				return
			}
			if got := events.kinds(); got != "registered sent gave_up_final" {
				t.Errorf("%s: got %s", tt.line, got)
			}
			begun := time.Now()
			send(t, transport, get(t, context.Background()))
			if took := time.Since(begun); took > 0 {
				t.Errorf("%s: the next request waited %v", tt.line, took)
			}
		})
	}
}

// TestFinalKeepsTheWait: a final denial that states a wait holds the others of its route.
func TestFinalKeepsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials(1, "Retry-After: 5", "X-Should-Retry: false")
		transport := newTransport(t, s, nil)
		for range 2 {
			send(t, transport, get(t, context.Background()))
		}
		if gaps := s.gaps(); len(gaps) != 1 || gaps[0] < 5*time.Second {
			t.Errorf("got %v, want one request after 5 s", gaps)
		}
	})
}

// TestFinalIsOfDenials: other responses are not asked about, and a panic leaves no turn and no unit behind.
func TestFinalIsOfDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, calls := &script{responses: []*http.Response{response(500), response(200), response(429)}}, 0
		transport := newTransport(t, s, &client.Options{Pace: true, Final: func(*http.Response) bool {
			calls++
			panic(errors.New("on purpose"))
		}})
		for i := range 4 {
			func() {
				defer func() {
					if why := recover(); (why != nil) != (i == 2) {
						t.Errorf("request %d: got the panic %v", i, why)
					}
				}()
				send(t, transport, get(t, context.Background()))
			}()
		}
		if calls != 1 {
			t.Errorf("got %d calls, want one", calls)
		}
	})
}
