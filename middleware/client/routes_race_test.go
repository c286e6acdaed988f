package client_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// A body may be closed long after its request, while other requests forget routes that
// are not held any more. For the race detector.
func TestBodiesCloseWhileRoutesAreForgotten(t *testing.T) {
	var sent atomic.Int64
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("x"))}
		if strings.HasPrefix(r.URL.Path, "/denied") && sent.Add(1)%3 == 1 {
			resp.StatusCode = http.StatusTooManyRequests
			resp.Header.Set("Retry-After-Ms", "1")
		}
		return resp, nil
	})
	transport, err := client.NewTransport(base, &client.Options{
		Name: "c", Limiter: algorithms.NewMemory(nil), Limit: algorithms.Concurrent(20, time.Minute), Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for n := range 300 {
				path := "/admitted"
				if caller == 0 {
					path = "/denied" + strings.Repeat("a", n%7)
				}
				r, err := http.NewRequest(http.MethodGet, "http://example.test"+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := transport.RoundTrip(r); err == nil {
					time.Sleep(time.Duration(n%3) * 100 * time.Microsecond)
					_ = resp.Body.Close()
				}
			}
		})
	}
	callers.Wait()
}
