package statuspage

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

func TestTexts(t *testing.T) {
	five := algorithms.TokenBucket(5, time.Minute)
	for _, tt := range []struct{ got, want string }{
		{spanText(-time.Second), "0 s"},
		{spanText(119 * time.Second), "119 s"},
		{spanText(119 * time.Minute), "119 min"},
		{spanText(47 * time.Hour), "47 h"},
		{spanText(48 * time.Hour), "2 days"},
		{shortTime(999), "999 ns"},
		{shortTime(1_050), "1.0 µs"},
		{shortTime(99_990 * time.Microsecond), "99.9 ms"},
		{shortTime(100 * time.Millisecond), "100 ms"},
		{shortTime(64 * time.Second), "64.0 s"},
		{groupDigits(999), "999"},
		{groupDigits(uint64(1_234_567)), "1\u202f234\u202f567"},
		{perSecond(5, 100), "5.0/s"},
		{perSecond(90, 60_000), "1.5/s"},
		{perSecond(60_000_000, 60_000), "1\u202f000\u202f000/s"},
		{percentText(1, 0), ""},
		{percentText(0, 7), "0 %"},
		{percentText(1, 101), "< 1 %"},
		{percentText(7, 7), "100 %"},
		{overrideText(&ratelimit.Override{}), "on"},
		{overrideText(&ratelimit.Override{Mode: ratelimit.ModeOff}), "off"},
		{overrideText(&ratelimit.Override{Limit: five}), "token-bucket 5/1m"},
		{overrideText(&ratelimit.Override{Limit: five, Mode: ratelimit.ModeShadow}), "shadow, token-bucket 5/1m"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// TestBars: each denial is visible, and no bar leaves its drawing.
func TestBars(t *testing.T) {
	bars := ticks{Requests: []uint32{1000, 1, 0, 500}, Denied: []uint32{1, 1, 0, 500}}.Bars()
	want := []bar{
		{X: 8 * 9, AllowedY: 0, Allowed: sparkHeight - 1, DeniedY: sparkHeight - 1, Denied: 1},
		{X: 8 * 10, AllowedY: sparkHeight - 2, Allowed: 0, DeniedY: sparkHeight - 2, Denied: 2},
		{X: 8 * 12, AllowedY: sparkHeight / 2, Allowed: 0, DeniedY: sparkHeight / 2, Denied: sparkHeight / 2},
	}
	if !slices.Equal(bars, want) {
		t.Errorf("got %+v, want %+v", bars, want)
	}
}
