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
