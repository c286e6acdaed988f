// Limits as text: what ParseLimit reads, and what String writes.

package algorithms_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var limitTexts = []struct {
	text, canonical string // canonical is empty if it equals text
	want            algorithms.Limit
}{
	{"token-bucket 60/1m burst 10", "", algorithms.TokenBucket(60, time.Minute).WithBurst(10)},
	{"60/1m burst 10", "token-bucket 60/1m burst 10", algorithms.TokenBucket(60, time.Minute).WithBurst(10)},
	{" 60/60s  burst 60 ", "token-bucket 60/1m", algorithms.TokenBucket(60, time.Minute)},
	{"sliding-window-log 5/1m", "", algorithms.SlidingWindowLog(5, time.Minute)},
	{"sliding-window-counter 30/90s", "", algorithms.SlidingWindowCounter(30, 90*time.Second)},
	{"fixed-window 20/24h", "fixed-window 20/1d", algorithms.FixedWindow(20, 24*time.Hour)},
	{"fixed-window 20/1m burst 20", "fixed-window 20/1m", algorithms.FixedWindow(20, time.Minute)},
	{"leaky-bucket 2/1s burst 5", "", algorithms.LeakyBucket(2, time.Second).WithBurst(5)},
	{"1/1us", "token-bucket 1/1us", algorithms.TokenBucket(1, time.Microsecond)},
	{"7/1500us", "token-bucket 7/1500us", algorithms.TokenBucket(7, 1500*time.Microsecond)},
	{"7/250ms", "token-bucket 7/250ms", algorithms.TokenBucket(7, 250*time.Millisecond)},
	{"1/365d", "token-bucket 1/365d", algorithms.TokenBucket(1, 365*24*time.Hour)},
	{"calendar-window 100/day", "", algorithms.PerDay(100, nil)},
	{"calendar-window 100/day UTC", "calendar-window 100/day", algorithms.PerDay(100, time.UTC)},
	{"calendar-window 10000/month Europe/Berlin", "", algorithms.PerMonth(10_000, location("Europe/Berlin"))},
	{"concurrent 10/30s", "", algorithms.Concurrent(10, 30*time.Second)},
	{"nobody", "", algorithms.Nobody()},
}

var badLimitTexts = []string{
	"", " ", "60", "60/", "/1m", "60/1", "60/m", "60/1y", "60/1M", "60/1.5s", "60/-1s", "60/+1s", "-60/1m", "+60/1m", "6_0/1m", "0x3c/1m",
	"60/1m burst", "60/1m burst x", "60/1m burst -1", "60/1m burst 0", "60/1m 10", "60/1m burst 10 10", "60 / 1m",
	"0/1m", "60/0s", "1000000001/1d", "60/408d", "60/99999999999999999999d", "99999999999999999999/1d",
	"gcra 60/1m", "token-bucket", "Token-Bucket 60/1m", "nobody 60/1m", "nobody nobody",
	"fixed-window 20/1m burst 10", "concurrent 10", "concurrent 10001/1s", "concurrent 10/30s burst 5", "calendar-window 20/1d", "calendar-window 20/decade", "calendar-window 20/day Mars/Olympus", "calendar-window 0/day",
	"calendar-window 20/day Local", "calendar-window 20/day ../UTC", "calendar-window 20/day UTC UTC", "calendar-window", "calendar-window x/day", "100/day",
	"sliding-window-log 10001/1d", "999999937/1us burst 1000000000",
}

func TestParseLimit(t *testing.T) {
	for _, tt := range limitTexts {
		got, err := algorithms.ParseLimit(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("ParseLimit(%q): got %v, %v, want %v", tt.text, got, err, tt.want)
		}
		canonical := tt.canonical
		if canonical == "" {
			canonical = tt.text
		}
		if got.String() != canonical {
			t.Errorf("ParseLimit(%q).String(): got %q, want %q", tt.text, got, canonical)
		}
	}
	for _, text := range badLimitTexts {
		got, err := algorithms.ParseLimit(text)
		if !errors.Is(err, algorithms.ErrInvalid) || got != (algorithms.Limit{}) {
			t.Errorf("ParseLimit(%q): got %v, %v, want ErrInvalid", text, got, err)
		}
	}
}

// The error of a slip says what is wrong, and what to write.
func TestParseLimitSays(t *testing.T) {
	for text, want := range map[string]string{
		"10/m":       `the window "m" has no number: write 1m`,
		"10/ms":      `the window "ms" has no number: write 1ms`,
		"10/1.5m":    `the window "1.5m" is not an integer with a unit: write 90s`,
		"10/.5s":     `the window ".5s" is not an integer with a unit: write 500ms`,
		"10/0s":      `the window "0s" is not between 1us and 407d`,
		"10/1h30m":   `the window "1h30m" is not an integer with a unit: write 90m`,
		"10/1.5d":    `the window "1.5d" is not an integer with a unit of us, ms, s, m, h or d`,
		"10/408d":    `the window "408d" is not between 1us and 407d`,
		"10/-1s":     `the window "-1s" is not an integer with a unit`,
		"10/minute":  `the window "minute" is not an integer with a unit`,
		"10/60":      `the window "60" is not an integer with a unit`,
		"10/":        `the window "" is not an integer with a unit`,
		"1.5/1m":     `"1.5" is not a count`,
		"10":         "want [algorithm ]requests/window",
		"10-S":       "want [algorithm ]requests/window",
		"":           "want [algorithm ]requests/window",
		"leaky 5/1m": `there is no algorithm "leaky"`,
	} {
		if _, err := algorithms.ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseLimit(%q): got %v, want it to say %q", text, err, want)
		}
	}
}

func TestLimitTextInJSON(t *testing.T) {
	limits := map[string]algorithms.Limit{"free": algorithms.TokenBucket(60, time.Minute).WithBurst(10)}
	text, err := json.Marshal(limits)
	if want := `{"free":"token-bucket 60/1m burst 10"}`; err != nil || string(text) != want {
		t.Fatalf("got %s, %v, want %s", text, err, want)
	}
	var read map[string]algorithms.Limit
	if err := json.Unmarshal(text, &read); err != nil || read["free"] != limits["free"] {
		t.Errorf("got %v, %v, want %v", read, err, limits)
	}
	if _, err := json.Marshal(algorithms.Limit{}); err == nil {
		t.Error("the zero Limit became text")
	}
	kept := algorithms.Nobody()
	if err := kept.UnmarshalText([]byte("60/1y")); err == nil || kept != algorithms.Nobody() {
		t.Errorf("after a bad text: got %v, %v, want an error and the limit as it was", kept, err)
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	tests := []struct {
		limit algorithms.Limit
		want  []string
	}{
		{algorithms.Limit{}, []string{"no limit"}},
		{algorithms.Limit{}.WithBurst(3), []string{"no limit"}},
		{algorithms.TokenBucket(0, 0), []string{"requests", "window", "burst"}},
		{algorithms.TokenBucket(-1, -time.Second).WithBurst(-2), []string{"requests", "window", "burst"}},
		{algorithms.TokenBucket(1, 1500*time.Nanosecond), []string{"whole microseconds"}},
		{algorithms.TokenBucket(1, 408*24*time.Hour), []string{"window"}},
		{algorithms.TokenBucket(2_000_000_000, time.Second), []string{"requests", "burst"}},
		{algorithms.TokenBucket(999_999_937, time.Second).WithBurst(1_000_000_000), []string{"rounder rate"}},
		{algorithms.FixedWindow(1_000_000_000_001, time.Second), []string{"between 1 and 1000000000000"}},
		{algorithms.FixedWindow(5, time.Second).WithBurst(6), []string{"fixed-window has no burst"}},
		{algorithms.SlidingWindowLog(10_001, time.Second), []string{"between 1 and 10000; use sliding-window-counter"}},
		{algorithms.Concurrent(10_001, 0), []string{"between 1 and 10000", "window"}},
		{algorithms.PerDay(0, time.FixedZone("Mars", 0)), []string{"requests", `time zone "Mars"`}},
		{algorithms.PerMonth(5, nil).WithBurst(6), []string{"calendar-window has no burst"}},
		{algorithms.Nobody().WithBurst(3), nil},
	}
	for _, tt := range tests {
		err := tt.limit.Validate()
		if tt.want == nil {
			if err != nil {
				t.Errorf("%v: got %v, want no error", tt.limit, err)
			}
			continue
		}
		if !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("%v: got %v, want ErrInvalid", tt.limit, err)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(tt.want) {
			t.Errorf("%v: got %q, want %d lines", tt.limit, lines, len(tt.want))
		}
		for i := range min(len(lines), len(tt.want)) {
			if !strings.Contains(lines[i], tt.want[i]) {
				t.Errorf("%v: got %q, want it to say %q", tt.limit, lines[i], tt.want[i])
			}
		}
	}
}

// The rounder-rate bound of a bucket: r·(cap+1) < 2^53.
func TestBurstBound(t *testing.T) {
	tests := []struct {
		burst int64
		ok    bool
	}{{4_503_599, true}, {4_503_600, false}}
	for _, tt := range tests {
		limit := algorithms.TokenBucket(1_000_000_000, time.Duration(999_999_937)*time.Microsecond).WithBurst(tt.burst)
		if err := limit.Validate(); (err == nil) != tt.ok {
			t.Errorf("1e9 per 999 999 937 µs, burst %d: got %v, want ok %t", tt.burst, err, tt.ok)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, tt := range limitTexts {
		f.Add(tt.text)
	}
	for _, text := range badLimitTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := algorithms.ParseLimit(text)
		if err != nil {
			if limit != (algorithms.Limit{}) {
				t.Errorf("%q: a limit beside the error: %v", text, limit)
			}
			return
		}
		if err := limit.Validate(); err != nil {
			t.Errorf("%q: parsed to an invalid limit: %v", text, err)
		}
		again, err := algorithms.ParseLimit(limit.String())
		if err != nil || again != limit {
			t.Errorf("%q: wrote %q, read %v, %v", text, limit, again, err)
		}
	})
}
