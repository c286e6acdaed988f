// A herd: 200 clients of 200 Transports share one key of one of penstock's servers, and are denied at once.

package finish

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

const herd = 200

// slots returns a server that gives each denied client an instant of its own.
func slots() http.Handler {
	return ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, ratelimit.Policy{
		Name: "all", Key: keyfunc.Const("all"), Limit: algorithms.TokenBucket(10, time.Second),
	})).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// stampede lets each client of the herd send one request, each through a base of its own address.
func stampede(t *testing.T, url string, base func(i int) http.RoundTripper) (sent, gaveUp int64, took time.Duration) {
	var requests, lost atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range herd {
		wg.Go(func() {
			do := ours(client.Options{})(counter(func(req *http.Request) (*http.Response, error) {
				requests.Add(1)
				return base(i).RoundTrip(req)
			}))
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			if do(ctx, url) != http.StatusOK {
				lost.Add(1)
			}
		})
	}
	wg.Wait()
	return requests.Load(), lost.Load(), time.Since(begun)
}

// TestHerdSimulated: at most 2.2 requests per success, and no client gives up. The ideal is 1.95.
func TestHerdSimulated(t *testing.T) {
	var per []float64
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			server := slots()
			sent, lost, took := stampede(t, "http://api.example.com/", func(i int) http.RoundTripper {
				return counter(func(req *http.Request) (*http.Response, error) {
					time.Sleep(time.Millisecond)
					w, in := httptest.NewRecorder(), req.Clone(req.Context())
					in.RemoteAddr = fmt.Sprintf("10.0.0.%d:1234", i)
					server.ServeHTTP(w, in)
					return w.Result(), nil
				})
			})
			per = append(per, float64(sent)/herd)
			if lost > 0 || sent > 22*herd/10 {
				t.Errorf("%d clients gave up, %.2f requests per success, %v", lost, float64(sent)/herd, took)
			}
		})
	}
	slices.Sort(per)
	t.Logf("requests per success: %.3f to %.3f, median %.3f", per[0], per[19], per[10])
}

// realHerd is the same over connections, each from an address of its own. It returns a sentence for the page.
func realHerd(t *testing.T) string {
	s := httptest.NewServer(slots())
	defer s.Close()
	var bases []*http.Transport
	for i := range herd {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}
		bases = append(bases, &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext})
	}
	sent, lost, took := stampede(t, s.URL, func(i int) http.RoundTripper { return bases[i] })
	for _, base := range bases {
		base.CloseIdleConnections()
	}
	if lost > 0 || sent > 22*herd/10 {
		t.Errorf("%d clients gave up, %.3f requests per success, want none and at most 2.2", lost, float64(sent)/herd)
	}
	return fmt.Sprintf("%.2f requests per success, %d gave up, %.1f s", float64(sent)/herd, lost, took.Seconds())
}
