// Token buckets in Redis: exact arithmetic in doubles, and TTLs.

package shared

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A product just above 2^53 may be rounded before the remainder takes it below,
// where doubles are exact. The script must not rely on such a product.
func TestTokenBucketDrainsExactlyAroundTwoTo53(t *testing.T) {
	t.Parallel()
	const (
		r, w  = 15_485_863, 86_400_000_000 // a prime, and a day
		begun = 1_763_729_430_000_000
		units = 200_000
	)
	client := redistest.Start(t).Client()
	limit := algorithms.TokenBucket(r, w*time.Microsecond).WithBurst(units)
	for _, dt := range []int64{1<<53/r - 1, 1<<53/r + 1, 1<<53/r + 2} {
		for _, f := range []int64{0, 1, r * dt % (1 << 53) % r, r - 2, r - 1} {
			key := fmt.Sprintf("usr=%d-%d", dt, f)
			limiter := newRedis(t, client, &Options{Now: func() time.Time { return time.UnixMicro(begun + dt) }})
			stored := limiter.StoredKey(checksFor(limit, key)[0])
			do(t, client, "set", stored, fmt.Sprintf("%d:%d:%d", int64(begun), units, f))
			take(t, limiter, key, limit, 1)
			k := (r*dt - f) / w
			rest := f + k*w // of r parts to the µs
			want := fmt.Sprintf("%d:%d:%d", begun+rest/r, units-k+1, rest%r)
			if got := client.Get(t.Context(), stored).Val(); got != want {
				t.Errorf("%d µs and %d parts: got %q, want %q", dt, f, got, want)
			}
		}
	}
}

// A busyBucket is the stored key of a bucket, and its limiter.
type busyBucket struct {
	*testing.T
	limiter *Limiter
	client  *redis.Client
	key     string
}

// took takes a unit, and returns when the bucket is full again.
func (b *busyBucket) took(limit algorithms.Limit) time.Duration {
	b.Helper()
	d := take(b, b.limiter, b.key, limit, 1)
	if !d.Allowed {
		b.Fatalf("%v: got %+v, want it admitted", limit, d)
	}
	return d.ResetAfter
}

func (b *busyBucket) ttl() time.Duration {
	return b.client.PTTL(b.Context(), "penstock:{"+b.key+"}:default:tb").Val()
}

// wantTTL allows for a busy machine, which asks for the TTL late.
func (b *busyBucket) wantTTL(least, most time.Duration) {
	b.Helper()
	if got := b.ttl(); got < least-5*time.Second || got > most+2*time.Millisecond {
		b.Errorf("got a TTL of %v, want %v to %v", got, least, most)
	}
}

// The key of a bucket that is used once lives until the bucket is full. If it is used
// again, it lives for up to twice ten seconds longer, or twice the time in which the
// bucket drains. So most takes leave its TTL alone.
func TestTTLOfBusyBuckets(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	b := &busyBucket{T: t, limiter: newRedis(t, client, nil), client: client, key: "usr=1"}
	perHour, perSecond := algorithms.TokenBucket(3_600, time.Hour), algorithms.TokenBucket(10, time.Second)

	first := b.took(perHour)
	b.wantTTL(first, first)
	for range 25 {
		reset := b.took(perHour)
		b.wantTTL(reset, reset+20*time.Second)
	}

	// A slower limit needs the state for longer.
	reset := b.took(algorithms.TokenBucket(360, time.Hour).WithBurst(3_600))
	b.wantTTL(reset, reset+20*time.Second)

	b.key = "usr=2"
	for range 5 {
		reset := b.took(perSecond)
		b.wantTTL(reset, reset+2*time.Second)
	}
}

// A text that is a number to Lua, and no integer to Redis, is replaced.
func TestTokenBucketReplacesTextsThatAreNoInteger(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	limiter := newRedis(t, client, nil)
	limit := algorithms.TokenBucket(100, time.Hour) // six of 100 are too few to note their instant
	stored := limiter.StoredKey(checksFor(limit, "usr=1")[0])
	text := fmt.Sprintf("%de03005", time.Now().UnixMilli())
	if err := client.Set(t.Context(), stored, text, 10*time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if d := take(t, limiter, "usr=1", limit, 1); !d.Allowed || d.Remaining != 94 {
		t.Errorf("got %+v, want that 6 of 100 are used", d)
	}
	if n, err := client.Get(t.Context(), stored).Int64(); err != nil || n%1_000 != 6 {
		t.Errorf("got %d stored, error %v, want 6 units at an instant", n, err)
	}
}
