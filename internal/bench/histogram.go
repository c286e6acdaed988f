package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets whose width is at most a 32nd of
// their values, because a worker makes too many to keep.
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

// bucketOf returns the bucket of a value: its octave, and the bits after the
// first one.
func bucketOf(v uint64) int {
	octave := bits.Len64(v) - 1
	if octave < 5 {
		return int(v)
	}
	return (octave-4)*bucketsPerOctave + int(v>>(octave-5))&(bucketsPerOctave-1)
}

func bucketBegin(i int) uint64 {
	if i < bucketsPerOctave {
		return uint64(i)
	}
	return uint64(bucketsPerOctave+i%bucketsPerOctave) << (i/bucketsPerOctave - 1)
}
