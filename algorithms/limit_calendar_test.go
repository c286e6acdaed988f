// Limits of the calendar: what counts after a change, and which are equal.

package algorithms_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// What a day has used counts in the month of that day, and the other way round;
// windows of the epoch have keys of their own.
func TestCalendarLimitsChange(t *testing.T) {
	clock := newClock() // on 21 November
	m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
	day, month := algorithms.PerDay(5, nil), algorithms.PerMonth(20, nil)
	steps := []struct {
		limit algorithms.Limit
		pause time.Duration
		want  int64 // remaining after a take
	}{
		{day, 0, 4},
		{day, 0, 3},
		{month, 0, 17},
		{day, 0, 1},
		{algorithms.PerDay(5, location("Asia/Tokyo")), 0, 0},
		{algorithms.FixedWindow(5, 24*time.Hour), 0, 4},
		{day, 24 * time.Hour, 4},
		{month, 0, 18},
		{month, 24 * time.Hour, 17},
		{day, 0, 1},
		{month, 10 * 24 * time.Hour, 19},
	}
	for i, s := range steps {
		clock.add(s.pause)
		if d := take(t, m, "usr=1", s.limit); !d.Allowed || d.Remaining != s.want {
			t.Errorf("step %d, %v: got %+v, want %d remaining", i, s.limit, d, s.want)
		}
	}
}

func TestCalendarLimitsAreComparable(t *testing.T) {
	berlin, again := location("Europe/Berlin"), location("Europe/Berlin")
	if berlin == again {
		t.Fatal("the zone was loaded once; this test is about zones that were loaded twice")
	}
	if algorithms.PerDay(1, berlin) != algorithms.PerDay(1, again) {
		t.Error("limits of a zone that was loaded twice differ")
	}
	if algorithms.PerDay(1, nil) != algorithms.PerDay(1, time.UTC) {
		t.Error("limits without a zone are not those of UTC")
	}
	if algorithms.PerDay(1, berlin) == algorithms.PerMonth(1, berlin) || algorithms.PerDay(1, berlin) == algorithms.PerDay(1, nil) {
		t.Error("different limits are the same")
	}
	for _, zone := range []*time.Location{time.Local, time.FixedZone("", 3600), time.FixedZone("UTC", 3600), time.FixedZone("CET", 3600), time.FixedZone("Mars/Olympus", 0)} {
		if algorithms.PerDay(1, zone).Validate() == nil {
			t.Errorf("the zone %q is no mistake", zone)
		}
	}
}
