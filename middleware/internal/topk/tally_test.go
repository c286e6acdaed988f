package topk

import (
	"testing"
	"time"
)

// TestTallyForgets: a key is counted for ten minutes at least, and for twenty at most.
func TestTallyForgets(t *testing.T) {
	var tally Tally
	for range 3 {
		tally.Add(1, "a", nil, 9*time.Minute)
	}
	tally.Add(1, "a", nil, 11*time.Minute)
	tally.Add(2, "b", nil, 12*time.Minute)
	want := func(at time.Duration, total uint64, keys ...string) {
		t.Helper()
		top, all := tally.Top(at)
		if all != total || len(top) != len(keys) {
			t.Fatalf("at %v: got %v of %d, want %v of %d", at, top, all, keys, total)
		}
		for i, key := range keys {
			if top[i].Key != key {
				t.Errorf("at %v: got %v, want %v", at, top, keys)
			}
		}
	}
	want(13*time.Minute, 5, "a", "b")
	top, _ := tally.Top(13 * time.Minute)
	if a := top[0]; a.Count-a.Error > 4 || a.Count < 4 || a.First != 9*time.Minute || a.Last != 11*time.Minute {
		t.Errorf("got %+v, want 4 from 9 to 11 minutes", a)
	}
	want(21*time.Minute, 2, "a", "b")
	want(31*time.Minute, 0)
}
