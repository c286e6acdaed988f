// How long Redis takes to answer. A reply that comes after the deadline counts, too:
// without it, the figures would improve while Redis is slow.

package batch

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// tripBounds are the upper bounds of the buckets. The default deadline is one.
var tripBounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// roundTrips counts the round trips of scripts.
type roundTrips struct {
	buckets [len(tripBounds) + 1]atomic.Uint64 // the last one has the longer ones
	sum     atomic.Int64                       // ns
	last    atomic.Pointer[answer]
}

// An answer is the latest reply.
type answer struct {
	at   time.Time
	took time.Duration
}

func (r *roundTrips) add(took time.Duration) {
	bucket, _ := slices.BinarySearch(tripBounds[:], took)
	r.buckets[bucket].Add(1)
	r.sum.Add(int64(took))
	r.last.Store(&answer{time.Now(), took})
}

func (r *roundTrips) addStats(s *algorithms.Stats) {
	t := &s.Redis.RoundTrips
	t.Within = make(map[time.Duration]uint64, len(tripBounds))
	for i := range r.buckets {
		t.Count += r.buckets[i].Load()
		if i < len(tripBounds) {
			t.Within[tripBounds[i]] = t.Count
		}
	}
	t.Sum = time.Duration(r.sum.Load())
	if last := r.last.Load(); last != nil {
		s.Redis.Answered, s.Redis.Took = last.at, last.took
	}
}
