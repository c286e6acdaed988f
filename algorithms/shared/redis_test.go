// The contents of Redis, the number of charges, and the kinds of clients.

package shared

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

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

// The sign of a short state says whether its key lives to the end of a span. Only then do later takes add to it.
func TestSignsOfStates(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	r := newRedis(t, client, &Options{Now: func() time.Time { return time.UnixMicro(1_763_729_430_000_000) }})
	const positive, negative = "1763729430000000", "-1763729430000000"
	for _, tt := range []struct {
		limits []algorithms.Limit
		first  string
	}{
		{[]algorithms.Limit{
			algorithms.TokenBucket(10, time.Hour), algorithms.LeakyBucket(10, time.Hour), algorithms.TokenBucket(10, time.Microsecond),
		}, negative},
		{[]algorithms.Limit{
			algorithms.FixedWindow(10, time.Hour), algorithms.SlidingWindowCounter(10, time.Hour), algorithms.PerDay(10, nil),
		}, positive},
	} {
		for _, l := range tt.limits {
			for _, s := range []struct {
				ops  []algorithms.Op
				want string
			}{
				{[]algorithms.Op{algorithms.Take}, tt.first + "002"},
				{[]algorithms.Op{algorithms.Take}, positive + "004"},
				{[]algorithms.Op{algorithms.Grant}, negative + "002"},
				{[]algorithms.Op{algorithms.Take}, positive + "004"},
				{[]algorithms.Op{algorithms.Reset, algorithms.Force}, tt.first + "002"},
			} {
				var checks []algorithms.Check
				for _, op := range s.ops {
					checks = append(checks, algorithms.Check{Policy: "p", Key: l.String(), Limit: l, Cost: 2, Op: op})
				}
				if err := r.Allow(t.Context(), checks); err != nil {
					t.Fatal(err)
				}
				if got := client.Get(t.Context(), r.StoredKey(checks[0])).Val(); got != s.want {
					t.Errorf("%v of %v: got %s stored, want %s", s.ops, l, got, s.want)
				}
			}
		}
	}
}

// A client that would retry charges once, whatever happens to the reply.
func TestChargesOnceWhenRepliesAreLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := clientOf(t, server.Addr(), func(o *redis.Options) {
		o.ReadTimeout, o.MinIdleConns = time.Second, 6 // a busy machine answers sooner
		o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 3, time.Millisecond, 5*time.Millisecond
	})
	r := newRedis(t, client, &Options{Deadline: 5 * time.Second})
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	take(t, r, "usr=1", limit, 1)

	server.Stop()
	_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
	server.Continue()
	if err == nil {
		t.Fatal("a stopped server made a decision")
	}
	if d := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0); d.Remaining < 98 {
		t.Errorf("got %d remaining, want 98 at least: one charge before, one that was lost", d.Remaining)
	}
	if got := statsOf(r).Redis; failuresOf(r) != 1 || got.Scripts != 3 || got.ScriptLoads != 1 {
		t.Errorf("got %+v, want one error and three scripts, the first of them sent whole", got)
	}
}

func TestScriptIsLoadedAgain(t *testing.T) {
	client := redistest.Start(t).Client()
	r := newRedis(t, client, nil)
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	for i := range 3 {
		do(t, client, "script", "flush")
		for j := range 2 {
			if d := take(t, r, "usr=1", limit, 1); d.Remaining != int64(99-2*i-j) {
				t.Errorf("take %d: got %d remaining, want %d", 2*i+j, d.Remaining, 99-2*i-j)
			}
		}
	}
	if got := statsOf(r).Redis; got.Scripts != 9 || got.ScriptLoads != 3 || got.Checks != 6 || got.Missing != 1 || failuresOf(r) != 0 {
		t.Errorf("got %+v, want 9 scripts, 3 of them sent whole, 6 checks, 1 of a missing key, and no error", got)
	}
}

// Scripts are counted by the checks that they held.
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
	s := statsOf(r).Redis
	if want := [9]uint64{2, 1, 2, 1, 0, 0, 0, 1, 2}; s.Batches != want || s.Batched != 773 {
		t.Errorf("got %v with %d checks, want %v with 773", s.Batches, s.Batched, want)
	}
}

// A type of the user's that embeds a ClusterClient is one.
type embedding struct{ *redis.ClusterClient }

func TestClusterBehindAnEmbeddingType(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	r := newRedis(t, embedding{cluster.Client()}, nil)
	limit := algorithms.FixedWindow(10, 24*time.Hour)
	for i := range 3 {
		checks := checksFor(limit, "usr=1", "usr=2", "usr=3", "usr=4", "usr=1|rt=x")
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

// A ClusterClient behind a type that hides it works for one principal per call,
// and otherwise the error says what to do.
func TestClusterBehindAHidingType(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	r := newRedis(t, redistest.Script(cluster.Client()), nil)
	limit := algorithms.FixedWindow(10, 24*time.Hour)
	for i := range 3 {
		checks := checksFor(limit, "usr=1", "usr=1|rt=x")
		if err := r.Allow(context.Background(), checks); err != nil || checks[0].Decision.Remaining != int64(9-i) {
			t.Errorf("call %d: got %+v, %v, want %d remaining", i, checks[0].Decision, err, 9-i)
		}
	}
	wantTrouble(t, r.Allow(context.Background(), checksFor(limit, "usr=1", "usr=2")), "CROSSSLOT", "configuration success")
	wantMisconfigured(t, r, "cluster", "CROSSSLOT", "redis.NewClusterClient")
}

func TestKeyOfAnotherTypeIsAnErrorAndStays(t *testing.T) {
	client := redistest.Start(t).Client()
	r := newRedis(t, client, nil)
	ctx := context.Background()
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(100, time.Second), algorithms.LeakyBucket(100, time.Second), algorithms.SlidingWindowCounter(100, time.Second),
		algorithms.SlidingWindowLog(100, time.Second), algorithms.FixedWindow(100, time.Second),
	} {
		key := r.redis.storedKey(checksFor(limit, "usr=1")[0])
		do(t, client, "hset", key, "field", "value")
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%v: got %v, want the key's error", limit, err)
		}
		reset := checksFor(limit, "usr=1")
		reset[0].Op = algorithms.Reset
		if err := r.Allow(ctx, reset); err == nil {
			t.Errorf("%v: a Reset deleted a key that is not a limiter's", limit)
		}
		if got := client.HGet(ctx, key, "field").Val(); got != "value" {
			t.Errorf("%v: the key changed to %q", limit, got)
		}
	}
}

// A check that finds no state is counted, also if another check of its call has
// found none either.
func TestMissingStatesAreCounted(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for _, l := range append(everyAlgorithm(10, time.Hour), algorithms.Concurrent(10, time.Hour)) {
		r := must(t, client, &Options{Deadline: time.Minute})
		check := algorithms.Check{Policy: "missing", Key: "usr=1", Limit: l}
		checks := []algorithms.Check{check, check}
		if err := r.Allow(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
		if got := r.Stats().Redis.Missing; got != 2 {
			t.Errorf("%v: got %d missing states, want 2", l, got)
		}
	}
}

// Hooks that trace commands see keys and numbers as text.
func TestTracesShowText(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var traced []string
	client := redistest.Script(server.Client(), redistest.Inspect(func(cmd redis.Cmder) { traced = append(traced, cmd.String()) }))
	l := newRedis(t, client, nil)
	for range 2 {
		take(t, l, "usr=1", algorithms.TokenBucket(10, time.Minute), 1)
	}
	last := traced[len(traced)-1]
	if !strings.HasPrefix(last, "evalsha "+lua.Digest+" 1 penstock:{usr=1}:default:tb tb") {
		t.Errorf("got %q, want the digest, the number of keys, the key and the limit", last)
	}
	if strings.Contains(last, "0x") || strings.Contains(last, "0xc") {
		t.Errorf("got %q, want no pointers", last)
	}
}
