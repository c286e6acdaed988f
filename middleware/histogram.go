package middleware

import (
	"math/bits"
	"time"
)

// Durations are counted in buckets, eight for each power of two of nanoseconds,
// so that a bucket is at most an eighth of its lowest duration wide and its
// middle at most a sixteenth away from any of them. The last also has all from
// 64 s.
const (
	bucketBits      = 3
	longestBits     = 36
	durationBuckets = (longestBits - bucketBits + 1) << bucketBits
)

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	ns := uint64(max(0, d))
	if ns < 1<<bucketBits {
		return int(ns) // exact
	}
	if ns >= 1<<longestBits {
		return durationBuckets - 1
	}
	shift := bits.Len64(ns) - 1 - bucketBits
	return shift<<bucketBits + int(ns>>shift)
}

// middleOf returns the duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 1<<(bucketBits+1) {
		return time.Duration(bucket)
	}
	shift := bucket>>bucketBits - 1
	low := uint64(bucket-shift<<bucketBits) << shift
	return time.Duration(low + 1<<shift/2)
}

// quantile returns the duration that so many per cent of those in the buckets
// are at most, give or take 6.25 %; 0 if there are none.
func quantile(counts []uint32, percent uint64) time.Duration {
	total := uint64(0)
	for _, n := range counts {
		total += uint64(n)
	}
	rank, seen := (total*percent+99)/100, uint64(0)
	for bucket, n := range counts {
		if seen += uint64(n); seen >= rank && rank > 0 {
			return middleOf(bucket)
		}
	}
	return 0
}
