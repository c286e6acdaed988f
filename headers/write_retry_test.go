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

// TestSeconds has the bounds of Retry-After.
func TestSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		1:                       "1", // W17
		0:                       "1",
		-1:                      "1",
		math.MinInt64:           "1",
		time.Second:             "1",
		2 * time.Second:         "2", // W18
		2*time.Second + 1:       "3", // W18
		1209600 * time.Second:   "1209600",
		1209600*time.Second + 1: "1209600",
		headers.Never - 1:       "1209600",
		headers.Never:           "",
	} {
		for _, d := range []headers.Dialect{headers.Draft, headers.SeparateFields} {
			h := write(d, headers.Response{Denied: true, RetryAfter: wait})
			if got := h.Get("Retry-After"); got != want || want == "" && len(h) > 0 {
				t.Errorf("%v, %v: got %v, want %q", d, wait, h, want)
			}
		}
	}
}

// retryAfterLines are lines that an outer handler may have set, and the line after
// a wait of 5 s. Never removes all of them.
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
	{[]string{"9223372037"}, "1209600"},
	{[]string{strings.Repeat("9", 23)}, "1209600"},
	{[]string{"18446744073709551617"}, "1209600"}, // 1, if it wrapped
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

func TestRetryAfterOfAnOuterHandler(t *testing.T) {
	for _, tt := range retryAfterLines {
		for _, d := range []headers.Dialect{headers.Draft, headers.SeparateFields} {
			h := http.Header{"Retry-After": slices.Clone(tt.lines)}
			d.Write(h, headers.Response{Denied: true, RetryAfter: 4001 * ms})
			if got := h["Retry-After"]; !slices.Equal(got, []string{tt.want}) || len(h) > 1 {
				t.Errorf("%v, %q: got %q, want %s alone", d, tt.lines, h, tt.want)
			}
		}
	}
}

// TestNeverRemovesRetryAfter makes sure that an outer handler's 30 s do not invite a
// client that no wait helps.
func TestNeverRemovesRetryAfter(t *testing.T) {
	for _, tt := range retryAfterLines {
		for _, d := range []headers.Dialect{headers.Draft, headers.SeparateFields} {
			h := http.Header{"Retry-After": slices.Clone(tt.lines)}
			d.Write(h, headers.Response{Denied: true, RetryAfter: headers.Never})
			if len(h) > 0 {
				t.Errorf("%v, %q: got %q, want none", d, tt.lines, h)
			}
		}
	}
}

// TestAdmittedLeavesRetryAfter makes sure that an admitted response neither sets
// the field nor changes an outer handler's field (W22).
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
