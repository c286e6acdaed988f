package service

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// newService is what you test. It takes its limiter as an argument.
func newService(limiter algorithms.Limiter) http.Handler {
	return ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "api", Limit: algorithms.TokenBucket(2, time.Minute),
	})).Handler(http.NotFoundHandler())
}

func want(t *testing.T, service http.Handler, statuses ...int) {
	t.Helper()
	for i, want := range statuses {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != want {
			t.Errorf("request %d: got status %d, want %d", i, w.Code, want)
		}
	}
}

// Without Redis, in the fake time of synctest: a wait takes no time.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(algorithms.NewMemory(nil))
		want(t, service, 404, 404, 429)
		time.Sleep(30 * time.Second)
		want(t, service, 404, 429)
	})
}

// With miniredis, a Redis inside the test, whose clock the test sets.
func TestMiniredis(t *testing.T) {
	m, now := miniredis.RunT(t), time.Now()
	m.SetTime(now)
	service := newService(newLimiter(t, redis.NewClient(&redis.Options{Addr: m.Addr()})))
	want(t, service, 404, 404, 429)
	m.SetTime(now.Add(30 * time.Second)) // FastForward moves only TTLs
	want(t, service, 404, 429)
}

// With a redis-server that ends with the test: two instances count together.
func TestRedisServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := exec.CommandContext(t.Context(), "redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // t.Context has ended, and so has the server
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	for rdb.Ping(t.Context()).Err() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	one, other := newService(newLimiter(t, rdb)), newService(newLimiter(t, rdb))
	want(t, one, 404)
	want(t, other, 404, 429)
	want(t, one, 429)
}

// newLimiter has the options of tests: a denial ends when the clock says so, and a busy machine is no outage.
func newLimiter(t *testing.T, rdb *redis.Client) algorithms.Limiter {
	limiter := ratelimit.Must(shared.New(rdb, &shared.Options{Views: shared.ViewsOff, Deadline: 10 * time.Second}))
	t.Cleanup(func() { _, _ = limiter.Close(), rdb.Close() })
	return limiter
}
