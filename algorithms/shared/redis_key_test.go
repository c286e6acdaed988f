// The keys that operators find in Redis.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// StoredKey returns the key that is written, whatever its parts hold. A check
// without a state has none.
func TestStoredKey(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	r := newRedis(t, client, &Options{Prefix: "rl"})
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(5, time.Hour), algorithms.LeakyBucket(5, time.Hour), algorithms.SlidingWindowCounter(5, time.Hour),
		algorithms.SlidingWindowLog(5, time.Hour), algorithms.FixedWindow(5, time.Hour),
	} {
		for _, key := range []string{"usr=42", "key={a}|rt=GET /v1", "#"} {
			check := algorithms.Check{Policy: "p", Key: key, Limit: l, Cost: 1}
			if err := r.Allow(t.Context(), []algorithms.Check{check}); err != nil {
				t.Fatal(err)
			}
			stored := r.StoredKey(check)
			if n, err := client.Exists(t.Context(), stored).Result(); err != nil || n != 1 {
				t.Errorf("%v %s: got %d keys %s, error %v, want one", l, key, n, stored, err)
			}
		}
	}
	if got := r.StoredKey(algorithms.Check{Policy: "p", Key: "usr=42", Limit: algorithms.TokenBucket(5, time.Hour)}); got != "rl:{usr=42}:p:tb" {
		t.Errorf("got %s", got)
	}
	for _, c := range []algorithms.Check{{Policy: "p", Key: "usr=42"}, {Policy: "p", Key: "usr=42", Limit: algorithms.Nobody()}} {
		if got := r.StoredKey(c); got != "" {
			t.Errorf("%+v: got %s, want none", c, got)
		}
	}
}
