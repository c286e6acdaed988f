// Limits of the calendar: what counts after a change, and which are equal.

package algorithms_test

import (
	"strings"
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

// Weeks, quarters and years turn with the calendar, and are read as they are written.
func TestLongCalendarLimits(t *testing.T) {
	for _, tt := range []struct {
		limit algorithms.Limit
		text  string
		turn  string // the first after Friday, 21 November 2025
	}{
		{algorithms.PerWeek(5, nil, time.Monday), "calendar-window 5/week", "2025-11-24T00:00:00Z"},
		{algorithms.PerWeek(5, nil, time.Friday), "calendar-window 5/week-friday", "2025-11-28T00:00:00Z"},
		{algorithms.PerWeek(5, location("Asia/Tokyo"), time.Sunday), "calendar-window 5/week-sunday Asia/Tokyo", "2025-11-22T15:00:00Z"},
		{algorithms.PerQuarter(5, nil), "calendar-window 5/quarter", "2026-01-01T00:00:00Z"},
		{algorithms.PerYear(5, location("Asia/Tokyo")), "calendar-window 5/year Asia/Tokyo", "2025-12-31T15:00:00Z"},
	} {
		clock := newClock()
		m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
		turn, err := time.Parse(time.RFC3339, tt.turn)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := algorithms.ParseLimit(tt.text); err != nil || read != tt.limit || read.String() != tt.text {
			t.Errorf("%s: got %v, error %v, want %v", tt.text, read, err, tt.limit)
		}
		if d, err := algorithms.AllowN(t.Context(), m, "usr=1", tt.limit, 5); err != nil || !d.Allowed || !clock.now().Add(d.ResetAfter).Equal(turn) {
			t.Errorf("%s: got %+v, error %v, want a turn at %s", tt.text, d, err, tt.turn)
		}
		clock.add(turn.Sub(clock.now()) - time.Microsecond)
		if d := take(t, m, "usr=1", tt.limit); d.Allowed {
			t.Errorf("%s: a unit came back before %s", tt.text, tt.turn)
		}
		clock.add(time.Microsecond)
		if d := take(t, m, "usr=1", tt.limit); !d.Allowed || d.Remaining != 4 {
			t.Errorf("%s: got %+v at %s, want 4 left", tt.text, d, tt.turn)
		}
	}
	for _, day := range []time.Weekday{-1, 7} {
		if err := algorithms.PerWeek(1, nil, day).Validate(); err == nil || !strings.Contains(err.Error(), "a week begins on one of") {
			t.Errorf("weeks that begin on day %d: got error %v", day, err)
		}
	}
}
