package main

import (
	"testing"
	"time"
)

func TestHistogramBuckets(t *testing.T) {
	for i := range 40 * bucketsPerOctave {
		begin, next := bucketBegin(i), bucketBegin(i+1)
		if bucketOf(begin) != i || bucketOf(next-1) != i {
			t.Fatalf("bucket %d is from %d to %d; got %d and %d", i, begin, next-1, bucketOf(begin), bucketOf(next-1))
		}
		if width := next - begin; width > 1 && width*bucketsPerOctave > begin {
			t.Fatalf("bucket %d is from %d to %d: too wide", i, begin, next-1)
		}
	}
}

func TestHistogramQuantiles(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 501 * time.Microsecond, 0.99: 991 * time.Microsecond, 0.999: time.Millisecond} {
		if got := h.quantile(q); got > want || got < want-want/bucketsPerOctave {
			t.Errorf("quantile %v: got %v, want at most a 32nd below %v", q, got, want)
		}
	}
}
