package statuspage

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// TestWhyBypassed: the page says why Redis is not used, and what this instance admits meanwhile.
func TestWhyBypassed(t *testing.T) {
	var s algorithms.Stats
	s.Shared, s.Fallback.Open, s.Fallback.Reason, s.Fallback.Error, s.Fallback.Instances = true, 1, "timeout", "Redis answered after 100ms", 2
	s.Redis.Deadline, s.Redis.Excused = 50*time.Millisecond, 7
	const want = "Redis is not used: timeout (Redis answered after 100ms), with a deadline of 50ms"
	if got := newLimiterView("redis", s).Why; got != want+", and it has never answered; this instance admits 1/2 of each limit" {
		t.Errorf("got %s", got)
	}
	s.Redis.Answered, s.Redis.Took = time.Date(2026, 1, 1, 13, 14, 15, 0, time.UTC), 100200*time.Microsecond
	v := newLimiterView("redis", s)
	if got := v.Why; got != want+", and its last answer, at 13:14:15, took 100.2ms; this instance admits 1/2 of each limit" {
		t.Errorf("got %s", got)
	}
	if got := v.Figures[0]; got.Label != "Round trips for which this process was late" || got.Value != 7 {
		t.Errorf("got the figure %+v, want 7 late round trips", got)
	}
}
