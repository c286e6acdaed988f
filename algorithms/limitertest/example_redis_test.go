package limitertest_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
)

// A real redis-server of the test's own, on a Unix socket: no port is in use, and
// it ends with the test. Want the Source Shared: it proves that Redis decided. In your
// package, name the function TestTogether.
func Example_redis() {
	run(testTogether)
	// Output: passed: true
}

func testTogether(t *testing.T) {
	ctx, limit := context.Background(), algorithms.TokenBucket(2, time.Hour)
	rdb := startRedis(t)
	for i, want := range []bool{true, true, false} { // three instances of a service
		limiter, err := shared.New(rdb, &shared.Options{Deadline: 10 * time.Second}) // a busy machine is no outage
		if err != nil {
			t.Fatal(err)
		}
		defer limiter.Close()
		d, err := algorithms.Allow(ctx, limiter, "usr=42", limit)
		if err != nil || d.Allowed != want || d.Source != algorithms.Shared {
			t.Errorf("instance %d: got %t, %v, %v, want %t, shared", i, d.Allowed, d.Source, err, want)
		}
	}
}

// startRedis starts a redis-server, and returns its client. Both end with the test.
func startRedis(t *testing.T) *redis.Client {
	program, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil && testing.Short() {
		t.Skipf("left out by -short: %v", err)
	}
	dir, err := os.MkdirTemp("", "redis") // a short path: a socket's has about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() { _ = rdb.Close() })
	for began := time.Now(); rdb.Ping(context.Background()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("redis-server does not answer")
		}
	}
	return rdb
}
