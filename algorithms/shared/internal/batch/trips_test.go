// Tests of the figures of round trips.

package batch

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// TestRoundTrips: each bucket counts the round trips up to its bound.
func TestRoundTrips(t *testing.T) {
	var r roundTrips
	for _, took := range []time.Duration{time.Microsecond, 250 * time.Microsecond, 251 * time.Microsecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Minute} {
		r.add(took)
	}
	var s algorithms.Stats
	r.addStats(&s)
	for bound, want := range map[time.Duration]uint64{250 * time.Microsecond: 2, 500 * time.Microsecond: 3, 25 * time.Millisecond: 3, 50 * time.Millisecond: 4, 100 * time.Millisecond: 5, time.Second: 5} {
		if got := s.Redis.RoundTrips.Within[bound]; got != want {
			t.Errorf("within %v: got %d, want %d", bound, got, want)
		}
	}
	if s.Redis.RoundTrips.Count != 6 || s.Redis.Took != time.Minute || s.Redis.RoundTrips.Sum < time.Minute || s.Redis.Answered.IsZero() {
		t.Errorf("got %+v, want 6 round trips, the last of a minute", s.Redis)
	}
}
