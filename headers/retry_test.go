package headers_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

func TestRetryAfterSeconds(t *testing.T) {
	tests := []struct {
		wait time.Duration
		want int64
		ok   bool
	}{
		{1, 1, true}, // W17
		{0, 1, true},
		{-1, 1, true},
		{math.MinInt64, 1, true},
		{time.Second, 1, true},
		{2 * time.Second, 2, true},   // W18
		{2*time.Second + 1, 3, true}, // W18
		{2147483 * time.Second, 2147483, true},
		{2147483*time.Second + 1, 2147483, true},
		{headers.Never - 1, 2147483, true},
		{headers.Never, 0, false},
	}
	for _, tt := range tests {
		if got, ok := headers.RetryAfterSeconds(tt.wait); got != tt.want || ok != tt.ok {
			t.Errorf("%v: got %d, %v, want %d, %v", tt.wait, got, ok, tt.want, tt.ok)
		}
	}
}

// retryAfterLines are lines that may be set already, what becomes of them when
// the wait is 5 s, and whether Never removes them.
var retryAfterLines = []struct {
	lines []string
	want  string
}{
	{nil, "5"},
	{[]string{"30"}, "30"}, // W20
	{[]string{"3"}, "5"},
	{[]string{"0"}, "5"},
	{[]string{"5"}, "5"},
	{[]string{"007"}, "7"},
	{[]string{" 30\t"}, "30"},
	{[]string{"3", "30", "20"}, "30"},
	{[]string{"3", "4"}, "5"},
	{[]string{"9223372037"}, "2147483"},
	{[]string{strings.Repeat("9", 23)}, "2147483"},
	{[]string{"18446744073709551617"}, "2147483"}, // 1, if it wrapped
	{[]string{""}, "5"},
	{[]string{"+30"}, "5"},
	{[]string{"-30"}, "5"},
	{[]string{"30.5"}, "5"},
	{[]string{"30s"}, "5"},
	{[]string{"1e3"}, "5"},
	{[]string{"3, 30"}, "5"},
	{[]string{"１２"}, "5"},
	{[]string{"Sat, 21 Nov 2026 12:00:30 GMT"}, "5"},
	{[]string{"Sat, 21 Nov 2026 12:00:30 GMT", "30"}, "30"},
}

func TestSetRetryAfter(t *testing.T) {
	for _, tt := range retryAfterLines {
		h := http.Header{"Retry-After": slices.Clone(tt.lines)}
		headers.SetRetryAfter(h, 4001*ms)
		if got := h["Retry-After"]; !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q: got %q, want %s", tt.lines, got, tt.want)
		}
		h = http.Header{"Retry-After": slices.Clone(tt.lines)}
		headers.Draft.Write(h, headers.Response{Denied: true, RetryAfter: 4001 * ms})
		if got := h["Retry-After"]; !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q: Write: got %q, want %s", tt.lines, got, tt.want)
		}
	}
}

// TestNeverRemovesRetryAfter has why: an outer handler's 30 s would invite a
// client for whom no wait helps.
func TestNeverRemovesRetryAfter(t *testing.T) {
	for _, tt := range retryAfterLines {
		h := http.Header{"Retry-After": slices.Clone(tt.lines)}
		headers.SetRetryAfter(h, headers.Never)
		if got, ok := h["Retry-After"]; ok {
			t.Errorf("%q: got %q", tt.lines, got)
		}
		h = http.Header{"Retry-After": slices.Clone(tt.lines)}
		headers.Draft.Write(h, headers.Response{Denied: true, RetryAfter: headers.Never})
		if got, ok := h["Retry-After"]; ok {
			t.Errorf("%q: Write: got %q", tt.lines, got)
		}
	}
}

// TestAdmittedLeavesRetryAfter makes sure that an admitted response neither
// sets the field nor touches the one of somebody else (W22).
func TestAdmittedLeavesRetryAfter(t *testing.T) {
	q := window(t, "a", 10, time.Minute)
	resp := admitted(headers.State{Quota: q, UnitAfter: time.Hour, RetryAfter: time.Hour})
	resp.RetryAfter = time.Hour
	h := http.Header{"Retry-After": {"Sat, 21 Nov 2026 12:00:30 GMT"}}
	headers.Draft.Write(h, resp)
	if got := h.Values("Retry-After"); len(got) != 1 || !strings.HasPrefix(got[0], "Sat") {
		t.Errorf("got %q", got)
	}
	if h := write(headers.Draft, resp); len(h["Retry-After"]) != 0 {
		t.Errorf("got %q, want none", h["Retry-After"])
	}
}
