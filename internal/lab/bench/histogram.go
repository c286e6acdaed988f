// Buckets of a histogram.
//
// The highest bit of a value is its octave: 1000 is 1111101000 in binary, and its
// octave is 9, because 2^9 <= 1000 < 2^10. An octave has 32 buckets of equal width,
// which is 2^octave / 32: here 16. The five bits after the highest one choose the
// bucket: here 11110, which is 30. So 1000 is in the bucket from (32+30) * 16 = 992
// to 1007. A bucket's width is at most a 32nd of its values.
//
// Values below 32 have a bucket each, with the value as its number. Octave 5 follows
// with the buckets 32 to 63, octave 6 with 64 to 95, and octave o begins at
// (o-4) * 32. The bucket of 1000 is (9-4) * 32 + 30 = 190.

package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets, because a worker makes too many checks
// to keep all durations.
type histogram [64 * bucketsPerOctave]int64

const bucketsPerOctave = 32

func (h *histogram) add(d time.Duration) { h[bucketOf(uint64(max(d, 1)))]++ }

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile returns the lower end of the bucket in which the quantile lies.
func (h *histogram) quantile(q float64) time.Duration {
	var all, below int64
	for _, n := range h {
		all += n
	}
	for i, n := range h {
		if below += n; n > 0 && float64(below) > q*float64(all) {
			return time.Duration(bucketBegin(i))
		}
	}
	return 0
}

// bucketOf returns the number of a value's bucket.
func bucketOf(v uint64) int {
	octave := bits.Len64(v) - 1
	if octave < 5 {
		return int(v)
	}
	return (octave-4)*bucketsPerOctave + int(v>>(octave-5))&(bucketsPerOctave-1)
}

// bucketBegin returns the least value of a bucket.
func bucketBegin(i int) uint64 {
	if i < bucketsPerOctave {
		return uint64(i)
	}
	return uint64(bucketsPerOctave+i%bucketsPerOctave) << (i/bucketsPerOctave - 1)
}
