package algorithms_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A product just above 2^53 may be rounded before the remainder takes it below,
// where doubles are exact: the script must not count on it.
func TestTokenBucketDrainsExactlyAroundTwoTo53(t *testing.T) {
	t.Parallel()
	const (
		r, w  = 15_485_863, 86_400_000_000 // a prime, and a day
		begun = 1_763_729_430_000_000
		units = 200_000
	)
	client := redistest.Start(t).Client()
	ctx := context.Background()
	limit := algorithms.TokenBucket(r, w*time.Microsecond).WithBurst(units)
	for _, dt := range []int64{1<<53/r - 1, 1<<53/r + 1, 1<<53/r + 2} {
		for _, f := range []int64{0, 1, r * dt % (1 << 53) % r, r - 2, r - 1} {
			key := fmt.Sprintf("usr=%d-%d", dt, f)
			limiter := newRedis(t, client, &algorithms.RedisOptions{Now: func() time.Time { return time.UnixMicro(begun + dt) }})
			stored := limiter.StoredKey(algorithms.Check{Policy: algorithms.DefaultPolicy, Key: key, Limit: limit, Cost: 1})
			if err := client.Set(ctx, stored, fmt.Sprintf("%d:%d:%d", begun, units, f), 0).Err(); err != nil {
				t.Fatal(err)
			}
			take(t, limiter, key, limit)
			k := (r*dt - f) / w
			rest := f + k*w // of r parts to the µs
			want := fmt.Sprintf("%d:%d:%d", begun+rest/r, units-k+1, rest%r)
			if got := client.Get(ctx, stored).Val(); got != want {
				t.Errorf("%d µs and %d parts: got %q, want %q", dt, f, got, want)
			}
		}
	}
}

// The TTL of a bucket that is used again has some to spare, up to ten seconds or
// the time in which the bucket drains, so that most takes leave it alone: also
// one that a slower limit has left. It
// never ends before the state says nothing any more, also when the limit is
// another by then.
func TestTTLOfBusyBuckets(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	ctx := context.Background()
	limiter := newRedis(t, client, &algorithms.RedisOptions{Timeout: time.Minute})
	perHour, perSecond := algorithms.TokenBucket(3_600, time.Hour), algorithms.TokenBucket(1, time.Second)
	key := limiter.StoredKey(algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: perHour})
	took := func(limit algorithms.Limit, key string) time.Duration {
		t.Helper()
		d := take(t, limiter, key, limit)
		if !d.Allowed {
			t.Fatalf("%v: got %+v, want it admitted", limit, d)
		}
		return d.ResetAfter
	}
	ttl := func(key string) time.Duration { return client.PTTL(ctx, key).Val() }
	wantTTL := func(least, most time.Duration) {
		t.Helper()
		if got := ttl(key); got < least-5*time.Second || got > most+2*time.Millisecond { // on a busy machine it is asked late
			t.Errorf("got a TTL of %v, want %v to %v", got, least, most)
		}
	}

	first := took(perHour, "usr=1")
	wantTTL(first, first) // there is none to spare yet
	second := took(perHour, "usr=1")
	wantTTL(second+10*time.Second, second+10*time.Second)
	began := time.Now()
	before := ttl(key)
	for range 5 {
		took(perHour, "usr=1")
	}
	if got, most := ttl(key), before; got > most || got < most-time.Since(began)-time.Millisecond {
		t.Errorf("got a TTL of %v after %v, want it left at %v", got, time.Since(began), before)
	}
	for range 20 { // more than there is to spare
		reset := took(perHour, "usr=1")
		if got := ttl(key); got < reset-5*time.Second {
			t.Fatalf("got a TTL of %v, want at least %v", got, reset)
		}
	}

	// A slower limit needs the state for longer.
	reset := took(algorithms.TokenBucket(360, time.Hour).WithBurst(3_600), "usr=1")
	wantTTL(reset+10*time.Second, reset+10*time.Second)

	short := limiter.StoredKey(algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=2", Limit: perSecond})
	if err := client.Set(ctx, short, fmt.Sprint(time.Now().UnixMicro(), "000"), 0).Err(); err != nil {
		t.Fatal(err)
	}
	took(perSecond, "usr=2")
	if got := ttl(short); got > 2*time.Second+2*time.Millisecond || got == -1 { // a busy machine asks too late
		t.Errorf("got a TTL of %v, want no more than twice the time to drain", got)
	}
}

// What reads as a number to Lua, and is none to Redis, is replaced.
func TestTokenBucketReplacesWhatIsNoInteger(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	limiter := newRedis(t, client, nil)
	limit := algorithms.TokenBucket(10, time.Hour)
	stored := limiter.StoredKey(algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit})
	text := fmt.Sprintf("%de03005", time.Now().UnixMilli())
	if err := client.Set(t.Context(), stored, text, 10*time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if d := take(t, limiter, "usr=1", limit); !d.Allowed || d.Remaining != 4 {
		t.Errorf("got %+v, want that 6 of 10 are used", d)
	}
	if n, err := client.Get(t.Context(), stored).Int64(); err != nil || n%1_000 != 6 {
		t.Errorf("got %d stored, error %v, want 6 units at an instant", n, err)
	}
}
