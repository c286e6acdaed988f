// Keys whose hashes are the same.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A denial answers only its own key, also if another key has the same hash.
func TestViewsTellsKeysOfOneHashApart(t *testing.T) {
	d := newDenied()
	day := 24 * time.Hour
	one := algorithms.Check{Policy: "api", Key: "usr=1", Limit: algorithms.TokenBucket(1, day), Cost: 1}
	hashOf := func(c algorithms.Check) uint64 {
		key, err := newCall([]algorithms.Check{c})
		if err != nil {
			t.Fatal(err)
		}
		defer key.free()
		return key.items[0].hash
	}
	for range 3 { // admitted, denied, remembered
		if err := d.Allow(t.Context(), []algorithms.Check{one}); err != nil {
			t.Fatal(err)
		}
	}
	if d.hits() != 1 {
		t.Fatalf("got %d hits, want 1", d.hits())
	}
	known := d.views.shards[hashOf(one)%viewShards].keys[hashOf(one)]
	if known == nil {
		t.Fatal("got no denial under the hash of its key")
	}
	for _, other := range []algorithms.Check{
		{Policy: "api", Key: "usr=2", Limit: one.Limit, Cost: 1},
		{Policy: "web", Key: "usr=1", Limit: one.Limit, Cost: 1},
		{Policy: "api", Key: "usr=1", Limit: algorithms.FixedWindow(1, day), Cost: 1},
	} {
		hash := hashOf(other)
		if hash == hashOf(one) {
			t.Errorf("%v has the same hash", other)
		}
		d.views.shards[hash%viewShards].keys[hash] = known
		checks := []algorithms.Check{other}
		if err := d.Allow(t.Context(), checks); err != nil || !algorithms.Allowed(checks) || d.hits() != 1 {
			t.Errorf("got %+v, error %v, want it to be asked for", checks[0].Decision, err)
		}
	}
}
