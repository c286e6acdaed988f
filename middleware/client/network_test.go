// Clients and servers with real connections.

package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// TestConnectionIsReused: the attempts of a request share a connection, and the body is
// sent whole each time.
func TestConnectionIsReused(t *testing.T) {
	question, denial := strings.Repeat("question ", 10_000), strings.Repeat("denial ", 5_000)
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); string(got) != question || err != nil {
			t.Errorf("got a body of %d bytes, %v", len(got), err)
		}
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, denial) // the client may have left
		}
	}))
	defer s.Close()
	var dials atomic.Int64
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	c := &http.Client{Transport: newTransport(t, base, nil)}
	defer c.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPut, s.URL, strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it is empty
	if resp.StatusCode != http.StatusOK || calls.Load() != 3 || dials.Load() != 1 {
		t.Errorf("got %d after %d calls, %d connections", resp.StatusCode, calls.Load(), dials.Load())
	}
}

// TestTimeout: http.Client's Timeout is a budget, too.
func TestTimeout(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	c := &http.Client{Transport: newTransport(t, &http.Transport{}, &client.Options{MaxWait: 24 * time.Hour}), Timeout: time.Minute}
	defer c.CloseIdleConnections()
	resp, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it is empty
	if wait, ok := client.RetryAfter(resp); resp.StatusCode != http.StatusTooManyRequests || wait != time.Hour || !ok {
		t.Errorf("got %d, %v", resp.StatusCode, wait)
	}
}

// TestCrowd: many goroutines share a Transport with all its parts, and all their contexts
// end at different times. Nothing is left behind.
func TestCrowd(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"a";r=1000;t=1`)
		if n.Add(1)%7 == 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, "text") // the client may have left
	}))
	defer s.Close()
	limit, memory := algorithms.Concurrent(4, time.Minute), algorithms.NewMemory(nil)
	c := &http.Client{Transport: newTransport(t, &http.Transport{}, &client.Options{Pace: true, Limiter: memory, Limit: limit})}
	defer c.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%30)*10*time.Millisecond+time.Millisecond)
			defer cancel()
			req := get(t, ctx)
			req.URL.Host = strings.TrimPrefix(s.URL, "http://")
			resp, err := c.Do(req)
			if err != nil {
				return // its context has ended, or would have
			}
			_, _ = io.Copy(io.Discard, resp.Body) // the context may end
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
	checks := []algorithms.Check{{Policy: "client", Key: "origin=" + s.URL, Limit: limit, Cost: 4}}
	if err := memory.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
		t.Errorf("not all units came back: %+v, %v", checks[0].Decision, err)
	}
}
