package algorithms_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// newRedis returns a limiter; that of nil options waits for a busy machine.
func newRedis(t *testing.T, c algorithms.Client, o *algorithms.RedisOptions) *algorithms.Redis {
	t.Helper()
	if o == nil {
		o = &algorithms.RedisOptions{Timeout: patience}
	}
	r, err := algorithms.NewRedis(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRedisNamesEveryMistake(t *testing.T) {
	for _, prefix := range []string{"a{b", "a}b", "a b", "é", "\n", strings.Repeat("x", 65)} {
		_, err := algorithms.NewRedis(nil, &algorithms.RedisOptions{Prefix: prefix})
		if err == nil || !strings.Contains(err.Error(), "client is nil") || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("prefix %q: got %v, want both mistakes", prefix, err)
		}
	}
}

// Clients with which no call could ever be decided are mistakes at once.
func TestNewRedisWantsAClient(t *testing.T) {
	var none *redis.ClusterClient
	for says, c := range map[string]algorithms.Client{
		"client is nil": none,
		"is a pipeline": redis.NewClient(&redis.Options{}).Pipeline(),
	} {
		if _, err := algorithms.NewRedis(c, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%T: got %v, want an error that says %q", c, err, says)
		}
		if _, err := algorithms.NewShared(c, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%T, shared: got %v, want an error that says %q", c, err, says)
		}
	}
}

func TestStoredKeyAndTTL(t *testing.T) {
	client := redistest.Start(t).Client()
	r := newRedis(t, client, nil)
	ctx := context.Background()
	checks := []algorithms.Check{
		{Policy: "orders", Key: "usr=42|rt=GET%20/v1/orders", Limit: algorithms.TokenBucket(60, time.Minute), Cost: 30},
		{Policy: "login", Key: "ip=::1", Limit: algorithms.SlidingWindowLog(5, time.Minute), Cost: 1},
	}
	if err := r.Allow(ctx, checks); err != nil || !algorithms.Allowed(checks) {
		t.Fatal(err, checks)
	}
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{
		"penstock:{usr=42}|rt=GET%20/v1/orders:orders:tb": 30 * time.Second,
		"penstock:{ip=::1}:login:sl":                      time.Minute,
	}
	if len(keys) != len(want) {
		t.Errorf("got keys %q, want %d", keys, len(want))
	}
	for _, key := range keys {
		ttl := client.PTTL(ctx, key).Val()
		if full, ok := want[key]; !ok || ttl > full+2*time.Millisecond || ttl < full-5*time.Second {
			t.Errorf("key %q: got a TTL of %v, want %v (known %t)", key, ttl, full, ok)
		}
	}
}

// A client that would retry charges once, whatever happens to the reply.
func TestChargesOnceWhenRepliesAreLate(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), ReadTimeout: 100 * time.Millisecond, MinIdleConns: 6,
		MaxRetries: 3, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 5 * time.Millisecond,
	})
	t.Cleanup(func() { _ = client.Close() })
	r := newRedis(t, client, nil)
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	take(t, r, "usr=1", limit)

	server.Stop()
	_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
	server.Continue()
	if err == nil {
		t.Fatal("a stopped server made a decision")
	}
	patient := newRedis(t, server.Client(), nil)
	d, err := algorithms.Peek(context.Background(), patient, "usr=1", limit)
	if err != nil || d.Remaining < 98 {
		t.Errorf("got %d remaining, %v, want 98 at least: one charge before, one that was lost", d.Remaining, err)
	}
	if got := r.Stats(); got.Errors != 1 || got.Scripts != 3 || got.ScriptLoads != 1 {
		t.Errorf("got %+v, want one error and three scripts, the first of them sent whole", got)
	}
}

func TestScriptIsLoadedAgain(t *testing.T) {
	client := redistest.Start(t).Client()
	var mu sync.Mutex
	var events []algorithms.EventKind
	r := newRedis(t, client, &algorithms.RedisOptions{Observe: func(e algorithms.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e.Kind)
	}})
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	for i := range 3 {
		if err := client.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		for j := range 2 {
			if d := take(t, r, "usr=1", limit); d.Remaining != int64(99-2*i-j) {
				t.Errorf("take %d: got %d remaining, want %d", 2*i+j, d.Remaining, 99-2*i-j)
			}
		}
	}
	if len(events) != 3 || events[0] != algorithms.EventScriptLoaded {
		t.Errorf("got events %v, want three of a loaded script", events)
	}
	if got := r.Stats(); got.Scripts != 9 || got.ScriptLoads != 3 || got.Checks != 6 || got.Missing != 1 {
		t.Errorf("got %+v, want 9 scripts, 3 of them sent whole, 6 checks, 1 of a missing key", got)
	}
}

// processOnly hides what a client is: only Process is left.
type processOnly struct{ algorithms.Client }

// A Cluster behind a client that does not say so is found out.
func TestClusterBehindAnotherType(t *testing.T) {
	cluster := redistest.StartCluster(t)
	r := newRedis(t, processOnly{cluster.Client()}, nil)
	limit := algorithms.FixedWindow(10, 24*time.Hour)
	for i := range 3 {
		var checks []algorithms.Check
		for _, key := range []string{"usr=1", "usr=2", "usr=3", "usr=4", "usr=1|rt=x"} {
			checks = append(checks, algorithms.Check{Policy: "p", Key: key, Limit: limit, Cost: 1})
		}
		if err := r.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if want := int64(9 - i); c.Decision.Remaining != want {
				t.Errorf("call %d, key %s: got %d remaining, want %d", i, c.Key, c.Decision.Remaining, want)
			}
		}
	}
}

// One Ring shard per tag: a call whose keys live on two shards is two scripts.
func TestRing(t *testing.T) {
	one, two := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": one.Addr(), "two": two.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	r := newRedis(t, ring, nil)
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	orders := [][]string{{"usr=1", "usr=2", "usr=3"}, {"usr=3", "usr=2", "usr=1"}, {"usr=2", "usr=1", "usr=3"}}
	for i, keys := range orders {
		var checks []algorithms.Check
		for _, key := range keys {
			checks = append(checks, algorithms.Check{Policy: "p", Key: key, Limit: limit, Cost: 1})
		}
		if err := r.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if want := int64(99 - i); c.Decision.Remaining != want {
				t.Errorf("call %d, key %s: got %d remaining, want %d: it counts on two shards", i, c.Key, c.Decision.Remaining, want)
			}
		}
	}
}

func TestKeyOfAnotherTypeIsAnErrorAndStays(t *testing.T) {
	client := redistest.Start(t).Client()
	r := newRedis(t, client, nil)
	ctx := context.Background()
	for _, limit := range plenty() {
		key := "penstock:{usr=1}:default:" + map[string]string{
			"token-bucket": "tb", "leaky-bucket": "lb", "sliding-window-counter": "sc", "sliding-window-log": "sl", "fixed-window": "fw",
		}[limit.Algorithm().String()]
		if err := client.HSet(ctx, key, "field", "value").Err(); err != nil {
			t.Fatal(err)
		}
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%v: got %v, want the key's error", limit, err)
		}
		if err := algorithms.Forget(ctx, r, "usr=1", limit); err == nil {
			t.Errorf("%v: Forget deleted what is not a limiter's", limit)
		}
		if got := client.HGet(ctx, key, "field").Val(); got != "value" {
			t.Errorf("%v: the key changed to %q", limit, got)
		}
	}
}

// TestBatchSizes: scripts are counted by the checks that they held.
func TestBatchSizes(t *testing.T) {
	r := newRedis(t, redistest.Start(t).Client(), nil)
	for _, n := range []int{1, 1, 2, 3, 4, 5, 128, 129, 500} {
		checks := make([]algorithms.Check, n)
		for i := range checks {
			checks[i] = algorithms.Check{Policy: "p", Key: "usr=1", Limit: algorithms.TokenBucket(100, time.Minute)}
		}
		if err := r.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
	}
	s := r.Stats()
	if want := [9]uint64{2, 1, 2, 1, 0, 0, 0, 1, 2}; s.Batches != want || s.Batched != 773 {
		t.Errorf("got %v with %d checks, want %v with 773", s.Batches, s.Batched, want)
	}
}
