// Durations are counted in buckets, eight for each power of two of nanoseconds.
// A bucket is at most an eighth as wide as its lowest duration. Its middle is
// therefore at most a sixteenth (6.25 %) away from any duration in it. The last
// bucket also holds all durations from 64 s.

package recent

import (
	"math/bits"
	"time"
)

const (
	bucketBits  = 3
	longestBits = 36

	// Buckets is the number of buckets.
	Buckets = (longestBits - bucketBits + 1) << bucketBits
)

// Bucket returns the bucket of a duration, 0 to Buckets-1. A negative duration
// counts as 0.
func Bucket(d time.Duration) int {
	ns := uint64(max(0, d))
	if ns < 1<<bucketBits {
		return int(ns) // exact
	}
	if ns >= 1<<longestBits {
		return Buckets - 1
	}
	shift := bits.Len64(ns) - 1 - bucketBits
	return shift<<bucketBits + int(ns>>shift)
}

// middle returns the duration in the middle of a bucket.
func middle(bucket int) time.Duration {
	if bucket < 1<<(bucketBits+1) {
		return time.Duration(bucket)
	}
	shift := bucket>>bucketBits - 1
	low := uint64(bucket-shift<<bucketBits) << shift
	return time.Duration(low + 1<<shift/2)
}

// Quantile returns an estimate, within 6.25 %, of the duration that the given
// percentage of all durations does not exceed. counts[i] is the number of
// durations in bucket i. Without durations Quantile returns 0.
func Quantile(counts []uint32, percent uint64) time.Duration {
	total := uint64(0)
	for _, n := range counts {
		total += uint64(n)
	}
	rank, seen := (total*percent+99)/100, uint64(0)
	for bucket, n := range counts {
		if seen += uint64(n); seen >= rank && rank > 0 {
			return middle(bucket)
		}
	}
	return 0
}
