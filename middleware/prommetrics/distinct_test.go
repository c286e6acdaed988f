package prommetrics

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestDistinct: estimates are accurate to some per cent, however often a key comes.
func TestDistinct(t *testing.T) {
	start := time.Now()
	for _, keys := range []int{0, 1, 10, 1_000, 50_000, 1_000_000} {
		d := newDistinct(start)
		random := rand.New(rand.NewPCG(uint64(keys), 0))
		for range keys {
			hash := random.Uint32()
			d.add(hash)
			d.add(hash)
		}
		// Four standard errors, or one key.
		got := float64(d.estimate(start))
		if tolerance := max(1, 4*0.0163*float64(keys)); math.Abs(got-float64(keys)) > tolerance {
			t.Errorf("got %v, want %d", got, keys)
		}
	}
}

// TestDistinctForgets: keys count for an hour, and for 20 minutes more at most.
func TestDistinctForgets(t *testing.T) {
	start := time.Now()
	for _, tt := range []struct {
		scrapes, lasts time.Duration
		want           uint64
	}{
		{time.Minute, time.Hour, 100},
		{time.Minute, time.Hour + 20*time.Minute, 0},
		{epoch, time.Hour, 100},
		{3 * time.Hour, 3 * time.Hour, 100}, // the first scrape
		{3 * time.Hour, 6 * time.Hour, 0},
	} {
		d := newDistinct(start)
		for i := range uint32(100) {
			d.add(i)
		}
		got := uint64(0)
		for after := tt.scrapes; after <= tt.lasts; after += tt.scrapes {
			got = d.estimate(start.Add(after))
		}
		if diff := int64(got) - int64(tt.want); diff < -6 || diff > 6 {
			t.Errorf("%v after, a scrape each %v: got %d keys, want %d", tt.lasts, tt.scrapes, got, tt.want)
		}
	}
}
