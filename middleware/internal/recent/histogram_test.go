package recent

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBucket: the middle of a duration's bucket is at most a sixteenth away from the duration.
func TestBucket(t *testing.T) {
	check := func(d time.Duration) {
		bucket := Bucket(d)
		if bucket < 0 || bucket >= Buckets {
			t.Fatalf("%v is in bucket %d of %d", d, bucket, Buckets)
		}
		if off := (middle(bucket) - d).Abs(); off > d/16 {
			t.Fatalf("the middle of the bucket of %v is %v", d, middle(bucket))
		}
	}
	for d := range time.Duration(100_000) {
		check(d)
	}
	for bits := range longestBits {
		check(1 << bits)
		check(1<<bits + time.Duration(rand.Int64N(1<<bits)))
	}
	for _, d := range []time.Duration{1 << longestBits, time.Hour, 1<<63 - 1} {
		if got := Bucket(d); got != Buckets-1 {
			t.Errorf("%v is in bucket %d, want the last", d, got)
		}
	}
	if got := Bucket(-1); got != 0 {
		t.Errorf("a negative duration is in bucket %d, want 0", got)
	}
}

func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, 1<<34), 1, 500).Draw(t, "durations")
		counts := make([]uint32, Buckets)
		for _, d := range durations {
			counts[Bucket(time.Duration(d))]++
		}
		slices.Sort(durations)
		for _, percent := range []int{1, 50, 99, 100} {
			exact := time.Duration(durations[(len(durations)*percent+99)/100-1])
			if got := Quantile(counts, uint64(percent)); (got - exact).Abs() > exact/16 {
				t.Errorf("got p%d %v, want %v within a sixteenth", percent, got, exact)
			}
		}
	})
	if got := Quantile(make([]uint32, Buckets), 99); got != 0 {
		t.Errorf("without durations: got %v, want 0", got)
	}
}
