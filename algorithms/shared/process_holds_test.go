package shared

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const holdEnv = "PENSTOCK_TEST_HOLDS" // the address of Redis, for a process of this test binary

// held is the limit of several processes; each leaves one unit behind, as if it
// had died.
var held = algorithms.Concurrent(7, time.Hour)

func holdCheck() algorithms.Check {
	return algorithms.Check{Policy: "p", Key: "usr=1", Limit: held, Cost: 1}
}

func holdStack(t *testing.T, client redis.UniversalClient) *Limiter {
	t.Helper()
	s := algorithms.Must(algorithms.NewShared(client, &Options{
		Redis:    algorithms.RedisOptions{Timeout: time.Minute}, // a slow machine is no outage
		Fallback: Options{Deadline: time.Minute},
	}))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestHoldProcess is no test, but what the processes of the test below run: a
// counter in Redis is one for each request that runs, and so never above the
// limit.
func TestHoldProcess(t *testing.T) {
	addr := os.Getenv(holdEnv)
	if addr == "" {
		t.Skip("a process of another test")
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	s := holdStack(t, client)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				runOne(t, client, s)
			}
		})
	}
	wg.Wait()
	for checks := []algorithms.Check{holdCheck()}; ; { // and dies with this one
		if err := s.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		if algorithms.Allowed(checks) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// runOne runs a request, if it may.
func runOne(t *testing.T, client *redis.Client, s *Limiter) {
	ctx := context.Background()
	checks := []algorithms.Check{holdCheck()}
	checks[0].Cost = 1 + rand.Int64N(2)
	if err := s.Allow(ctx, checks); err != nil {
		t.Error(err)
		return
	}
	if !algorithms.Allowed(checks) {
		time.Sleep(time.Millisecond)
		return
	}
	if running := client.IncrBy(ctx, "running", checks[0].Cost).Val(); running < 1 || running > held.Requests() {
		t.Errorf("got %d units running, want at most %d", running, held.Requests())
	}
	client.Incr(ctx, "admitted")
	time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
	for _, op := range []algorithms.Op{algorithms.Renew, algorithms.Return, algorithms.Return} {
		if op == algorithms.Return {
			client.DecrBy(ctx, "running", checks[0].Decision.Receipt.Units())
		}
		again := checks[0]
		checks[0].Op = op
		if err := s.Allow(ctx, checks); err != nil {
			t.Error(err)
		}
		if op == algorithms.Return { // once more, with the receipt that was returned
			again.Op = op
			if err := s.Allow(ctx, []algorithms.Check{again}); err != nil {
				t.Error(err)
			}
		}
	}
}

// However takes, renewals and returns of many processes meet, what runs is never
// more than the limit, and in the end only what died is held.
func TestProcessesTogetherRunNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	addr := client.Options().Addr
	var wg sync.WaitGroup
	for range workers {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHoldProcess$", "-test.timeout=90s")
		cmd.Env = append(os.Environ(), holdEnv+"="+addr)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("a process: %v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	d, err := algorithms.Peek(t.Context(), algorithms.Must(algorithms.NewRedis(client, &algorithms.RedisOptions{Timeout: time.Minute})), "usr=other", held)
	if err != nil || d.Remaining != held.Requests() {
		t.Fatalf("another key: got %+v, %v", d, err)
	}
	checks := []algorithms.Check{holdCheck()}
	checks[0].Cost = 0
	if err := holdStack(t, client).Allow(t.Context(), checks); err != nil {
		t.Fatal(err)
	}
	if got := checks[0].Decision.Remaining; got != held.Requests()-workers {
		t.Errorf("got %d remaining, want all but what %d processes left behind", got, workers)
	}
	admitted, err := client.Get(t.Context(), "admitted").Int()
	if err != nil || admitted < 100 {
		t.Errorf("got %d admitted, %v, want many", admitted, err)
	}
	t.Logf("%d of %d admitted", admitted, workers*8*100)
}
