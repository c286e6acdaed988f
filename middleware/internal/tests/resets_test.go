// HTTP/2 clients that open streams and reset them.

package tests

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// Clients reset their streams while all clients share a limit of concurrent requests in Redis, which answers late now
// and then. An innocent client is served at least half of the time, and afterwards no place is held for a request that
// has ended. The limit holds places for longer than the test waits.
func TestResetStreamsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	proxy := redistest.StartProxy(t, redisServer.Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	l := ratelimit.Must(shared.New(client, &shared.Options{Logger: quiet}))
	t.Cleanup(func() { _ = l.Close() })
	p := ratelimit.Policy{Name: "streams", Key: keyfunc.Const("all"), Limit: algorithms.Concurrent(100, 24*time.Hour)}
	var running atomic.Int64
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		if r.URL.Path == "/attack" {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	server := httptest.NewUnstartedServer(newMiddleware(t, l, &ratelimit.Options{Logger: quiet}, p).Handler(handler))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	get := func(ctx context.Context, path string) (status int) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			return 0 // the client has reset the stream
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}

	var over atomic.Bool
	var attack sync.WaitGroup
	for range 40 {
		attack.Go(func() {
			for !over.Load() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(20*time.Millisecond))))
				get(ctx, "/attack")
				cancel()
			}
		})
	}
	served, asked := 0, 0
	for range 5 {
		for _, fault := range []redistest.Fault{redistest.Pass(), redistest.Delay(100 * time.Millisecond)} {
			proxy.Set(fault)
			for range 5 {
				if asked++; get(t.Context(), "/innocent") == http.StatusOK {
					served++
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	over.Store(true)
	attack.Wait()
	proxy.Set(redistest.Pass())
	if 2*served < asked {
		t.Errorf("an innocent client was served %d times of %d during the attack, want at least half", served, asked)
	}
	redistest.Until(t, "no request runs", func() bool { return running.Load() == 0 })
	direct, held := newShared(t, redisServer.Client(), shared.Options{}), algorithms.Check{Policy: p.Name, Key: "const=all", Limit: p.Limit}
	redistest.Until(t, "no place is held", func() bool {
		checks := []algorithms.Check{held}
		return direct.Allow(t.Context(), checks) == nil && checks[0].Decision.Remaining == 100
	})
}
