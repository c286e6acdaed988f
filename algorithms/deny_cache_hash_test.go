package algorithms

import (
	"testing"
	"time"
)

// A denial is not another key's, whose hash is the same.
func TestDenyCacheTellsKeysOfOneHashApart(t *testing.T) {
	memory := Must(NewMemory(nil))
	defer memory.Close()
	c := newDenyCache(memory, 100)
	denied := []Check{{Policy: "api", Key: "usr=1", Limit: TokenBucket(1, time.Hour), Cost: 1}}
	denied[0].Decision = Decision{Source: Shared, RetryAfter: time.Hour}
	c.remember(denied, []uint64{0}, 0, time.Since(c.start))
	if err := c.Allow(t.Context(), denied); err != nil || c.hits.Load() != 1 {
		t.Fatalf("got %d hits, error %v, want 1", c.hits.Load(), err)
	}

	hash, sh := c.place(&denied[0])
	for _, other := range []Check{
		{Policy: "api", Key: "usr=2", Limit: TokenBucket(1, time.Hour), Cost: 1},
		{Policy: "web", Key: "usr=1", Limit: TokenBucket(1, time.Hour), Cost: 1},
		{Policy: "api", Key: "usr=1", Limit: FixedWindow(1, time.Hour), Cost: 1},
	} {
		place, theirs := c.place(&other)
		if place == hash {
			t.Errorf("%v has the same hash", other)
		}
		theirs.denials[place] = sh.denials[hash]
		checks := []Check{other}
		if err := c.Allow(t.Context(), checks); err != nil || !Allowed(checks) || c.hits.Load() != 1 {
			t.Errorf("got %+v, error %v, want it to be asked for", checks[0].Decision, err)
		}
	}
}
