// How Read finds the wait, joins limits with policies, and chooses among dialects.

package headers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// header returns a header of lines "Name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// none is the answer for a response without a wait.
const none = "none"

var waitVectors = []struct {
	lines []string // values of Retry-After; the first may be a Date
	want  string
}{
	{[]string{"120"}, "2m0s"}, {[]string{"0"}, "0s"}, {[]string{"007"}, "7s"}, {[]string{" 5 "}, "5s"},
	{[]string{"Sat, 21 Nov 2026 12:00:30 GMT"}, "30s"},
	{[]string{"Saturday, 21-Nov-26 12:00:30 GMT"}, "30s"},
	{[]string{"Sat Nov 21 12:00:30 2026"}, "30s"},
	{[]string{"Sat, 21 Nov 2026 11:59:00 GMT"}, "0s"},
	{[]string{"Date: Sat, 21 Nov 2026 12:00:25 GMT", "Sat, 21 Nov 2026 12:00:30 GMT"}, "5s"},
	{[]string{"Date: Sat, 21 Nov 2026 15:00:00 GMT", "Sat, 21 Nov 2026 15:00:30 GMT"}, "30s"},
	{[]string{"Date: yesterday", "Sat, 21 Nov 2026 12:00:30 GMT"}, "30s"},
	{[]string{"0.493"}, "1s"}, {[]string{"2.0"}, "2s"},
	{[]string{"5, 10"}, "10s"}, {[]string{"10, 5"}, "10s"}, {[]string{"10", "5"}, "10s"}, {[]string{"0,120"}, "2m0s"},
	{[]string{"5", "10"}, "10s"}, {[]string{"5", "soon"}, "5s"},
	{[]string{"5", "Sat, 21 Nov 2026 12:00:30 GMT"}, "30s"},
	{[]string{"999999999"}, "277777h46m39s"}, {[]string{"1000000000"}, "0s"}, {[]string{"1795262409"}, "9s"}, {[]string{"5, 1795262409"}, "9s"},
	{[]string{"1795262409000"}, "9s"}, {[]string{"1795262408.5"}, "9s"}, {[]string{"Date: Sat, 21 Nov 2026 12:00:04 GMT", "1795262409"}, "5s"},
	{[]string{"99999999999"}, "never"}, {[]string{"100000000000"}, "0s"}, {[]string{"100000000000000"}, "never"}, {[]string{strings.Repeat("9", 23)}, "never"},
	{[]string{"Sat, 21 Nov 2026 12:00:60 GMT"}, "1m0s"}, {[]string{"Sat Nov 21 12:00:60 2026"}, "1m0s"},
	{[]string{"-5"}, none}, {[]string{"+5"}, none}, {[]string{"5s"}, none}, {[]string{"1e3"}, none},
	{[]string{"0x10"}, none}, {[]string{"Infinity"}, none}, {[]string{"2."}, none}, {[]string{".5"}, none},
	{[]string{"5,"}, none}, {[]string{"5, abc"}, none}, {[]string{""}, none}, {[]string{"１２"}, none},
	{[]string{"Saturday, 21-Nov-26 12:00:30 PST"}, none}, {[]string{"Sat, 21 Nov 2026 12:00:30 CET"}, none},
	{[]string{"Sat Nov 21 2026 12:00:30 PST"}, none}, {[]string{"Sat Nov 21 2026 12:00:30 GMT+0000 (Coordinated"}, none},
	{[]string{"Sat, 21 Nov 2026 12:00:30"}, none}, {[]string{"2026-11-21T12:00:30"}, none}, {[]string{"2026-11-21"}, none},
	{[]string{strings.Repeat("0", 9000)}, none},
}

// dates are 30 s after at, as servers write them that do not follow RFC 9110.
var dates = []string{
	"Sat, 21 Nov 2026 12:00:30 UTC", // sethvargo/go-limiter: Go's time.RFC1123
	"Sat, 21 Nov 2026 12:00:30 Z", "Sat, 21 Nov 2026 12:00:30 UT", "Sat, 21 Nov 2026 12:00:30 +0000", "Sat, 21 Nov 2026 13:00:30 +0100",
	"Sat, 21 Nov 2026 12:00:30 -0000", "Saturday, 21-Nov-26 12:00:30 UTC", "Saturday, 21-Nov-26 12:00:30 +0000",
	"2026-11-21T12:00:30Z", "2026-11-21T12:00:30.000Z", "2026-11-21T13:00:30+01:00", "2026-11-21t12:00:30z",
	"Sat Nov 21 2026 12:00:30 GMT+0000 (Coordinated Universal Time)", "Sat Nov 21 2026 13:00:30 GMT+0100 (Central European Standard Time)",
	"Sat Nov 21 2026 12:00:30 GMT+0000", "Sat Nov 21 2026 07:00:30 GMT-0500 (EST)",
}

// TestReadDates: a date has one meaning in Retry-After and in a reset, beside a Date in each form.
func TestReadDates(t *testing.T) {
	for _, date := range dates {
		for _, h := range []http.Header{
			{"Retry-After": {date}}, {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {date}},
			{"Retry-After": {"Sat, 21 Nov 2026 12:01:00 GMT"}, "Date": {date}},
		} {
			f := headers.Read(http.StatusTooManyRequests, h, at)
			if f.From == "" || f.Wait != 30*time.Second || len(f.Malformed) > 0 {
				t.Errorf("%q: got %v from %q, malformed %q", h, f.Wait, f.From, f.Malformed)
			}
		}
	}
}

func TestReadRetryAfter(t *testing.T) {
	for _, tt := range waitVectors {
		h := http.Header{"Retry-After": tt.lines}
		if date, ok := strings.CutPrefix(tt.lines[0], "Date: "); ok {
			h = http.Header{"Date": {date}, "Retry-After": tt.lines[1:]}
		}
		if got := waitOf(headers.Read(http.StatusTooManyRequests, h, at)); got != tt.want {
			t.Errorf("%.60q: got %s, want %s", h, got, tt.want)
		}
	}
}

func waitOf(f headers.Fields) string {
	switch {
	case f.From == "":
		return none
	case f.Wait == headers.Never:
		return "never"
	}
	return f.Wait.String()
}

// TestReadWait: which field names the wait, beside which status.
func TestReadWait(t *testing.T) {
	const spent = `RateLimit: "a";r=0;t=60`
	tests := []struct {
		status int
		lines  []string
		want   string // from and wait
	}{
		{429, []string{"Retry-After: 5", spent}, "Retry-After 5s"},
		{429, []string{`RateLimit: "a";r=3;t=50, "b";r=0;t=9`}, "RateLimit 9s"},
		{429, []string{`RateLimit: "a";r=0;t=50, "b";r=0;t=9`}, "RateLimit 50s"},
		{429, []string{"Retry-After: soon", spent}, "RateLimit 1m0s"},
		{429, []string{`RateLimit: "a";r=0`}, none},
		{503, []string{spent}, "RateLimit 1m0s"},
		{413, []string{spent}, "RateLimit 1m0s"},
		{403, []string{spent}, "RateLimit 1m0s"},
		{200, []string{spent}, none},
		{301, []string{spent}, none},
		{301, []string{"Retry-After: 5"}, "Retry-After 5s"},
		{202, []string{"Retry-After: 5"}, none},
		{403, []string{"Retry-After: 5"}, "Retry-After 5s"},
		{429, []string{"Age: 7", spent}, none},
		{429, []string{"Age: 7", "Retry-After: 5"}, "Retry-After 5s"},
		{429, []string{"Age: 0", spent}, "RateLimit 1m0s"},
		{429, []string{"Retry-After-Ms: 1500"}, "Retry-After-Ms 1.5s"},
		{429, []string{"X-Amz-Retry-After: 10"}, "X-Amz-Retry-After 10ms"},
		{429, []string{"X-Ms-Retry-After-Ms: 99999999999999999999", "Retry-After: 1"}, "Retry-After 1s"},
		{429, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, "X-RateLimit-Reset 1m0s"},
		{429, []string{"X-RateLimit-Reset: 60"}, "X-RateLimit-Reset 1m0s"},
		{404, []string{"X-RateLimit-Reset: 60"}, none},
		{429, []string{"RateLimit: limit=10, reset=5"}, "RateLimit 5s"},
		{429, []string{"X-RateLimit-Remaining-Requests: 9", "X-RateLimit-Reset-Requests: 60s",
			"X-RateLimit-Remaining-Tokens: 0", "X-RateLimit-Reset-Tokens: 1m30s"}, "X-RateLimit-Reset-Tokens 1m30s"},
	}
	for _, tt := range tests {
		f := headers.Read(tt.status, header(tt.lines...), at)
		if got := strings.TrimSpace(f.From + " " + waitOf(f)); got != tt.want {
			t.Errorf("%d %q: got %s, want %s", tt.status, tt.lines, got, tt.want)
		}
	}
}

// TestReadScalars: the families of single numbers, their forms of a reset, and what
// stacked limiters make of them.
func TestReadScalars(t *testing.T) {
	for reset, want := range map[string]string{
		"60": " r1 t60", "1795262460": " r1 t60", "1795262460000": " r1 t60", "1795262460.5": " r1 t61", "6m0s": " r1 t360",
		"100000000000": " r1 t0", "12ms": " r1 t0.012", "2026-11-21T12:01:00Z": " r1 t60", "2026-11-21T12:01Z": " r1 t60", "1795262000": " r1 t0",
		"Sat, 21 Nov 2026 12:01:00 GMT": " r1 t60", "0.25": " r1 t1", "5, 60": " r1 t60", "60, 5": " r1 t60", "60, abc": " r1 t60",
		"abc": " r1 malformed", "-1": " r1 malformed", "": " r1 malformed", "1e9": " r1 malformed", "99999999999999999": " r1 malformed",
		"-5s": " r1 malformed", "5µs": " r1 malformed", "1..5s": " r1 malformed",
	} {
		h := header("Date: Sat, 21 Nov 2026 12:00:00 GMT", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: "+reset)
		if got := show1(headers.Read(http.StatusOK, h, at.Add(time.Hour))); got != want {
			t.Errorf("reset %q: got %s, want %s", reset, got, want)
		}
	}
	tests := []struct {
		lines []string
		want  string
	}{
		{[]string{"RateLimit-Limit: 100", "RateLimit-Remaining: 42", "RateLimit-Reset: 35"}, " r42 t35 q100"},
		{[]string{"RateLimit-Limit: 50, 50;w=60", "RateLimit-Remaining: 1"}, " r1 q50"},
		{[]string{`X-RateLimit-Limit: 10, 10;w=1;name="per-ip", 1000;w=3600`, "X-RateLimit-Remaining: 1"}, " r1 q10"},
		{[]string{"X-RateLimit-Remaining: 599.0", "X-RateLimit-Reset: 9"}, " r599 t9"},
		{[]string{"X-Rate-Limit-Limit: 9", "X-Rate-Limit-Remaining: 8", "X-Rate-Limit-Reset: 1795262460"}, " r8 t60 q9"},
		{[]string{"X-RateLimit-Reset: 1795262460.123", "X-RateLimit-Reset-After: 60.123", "X-RateLimit-Remaining: 0"}, " r0 t61"},
		{[]string{"X-RateLimit-Remaining: 5, 3", "X-RateLimit-Reset: 9"}, " r3 t9"},
		{[]string{"X-RateLimit-Remaining: 5", "X-RateLimit-Remaining: 7", "X-RateLimit-Reset: 9", "X-RateLimit-Reset: 30"}, " r5 t30"},
		{[]string{"X-RateLimit-Remaining: many", "X-RateLimit-Reset: 9"}, " t9 malformed"},
		{[]string{"X-RateLimit-Limit: many", "X-RateLimit-Reset: 9"}, " t9 malformed"},
		{[]string{"X-RateLimit-Limit: 100"}, ""},
		{[]string{"RateLimit-Remaining: 4", "X-RateLimit-Remaining: 9"}, " r4"},
		{[]string{`RateLimit: "a";r=1`, "RateLimit-Remaining: 4"}, "a r1"},
		{[]string{`RateLimit: "a"`, "RateLimit-Remaining: 4"}, " r4 malformed"},
		{[]string{"X-RateLimit-Limit-Requests: 60", "X-RateLimit-Remaining-Requests: 59", "X-RateLimit-Reset-Requests: 1s",
			"X-RateLimit-Limit-Tokens: 150000", "X-RateLimit-Remaining-Tokens: 149984", "X-RateLimit-Reset-Tokens: 6m0s"},
			"requests r59 t1 q60, tokens r149984 t360 q150000"},
		{[]string{"anthropic-ratelimit-input-tokens-remaining: 7", "anthropic-ratelimit-input-tokens-reset: 2026-11-21T12:01:00Z"}, "input-tokens r7 t60"},
		{[]string{"RateLimit-Limit: 100", "RateLimit-Remaining: 42", "RateLimit-Reset: 35", `RateLimit-Policy: "p";q=100;w=60`}, "p r42 t35 q100 w60 requests"},
		{[]string{"RateLimit-Limit: 100", "RateLimit-Remaining: 42", "RateLimit-Policy: 10;w=1, 100;w=60"}, " r42 q100 w60 requests,  q10 w1 requests"},
	}
	for _, tt := range tests {
		f := headers.Read(http.StatusOK, header(tt.lines...), at)
		if got := show1(f); got != tt.want || f.From != "" {
			t.Errorf("%q: got %s, want %s", tt.lines, got, tt.want)
		}
	}
}

// TestReadJoins: an item has the policy of its name and partition, or of its name.
func TestReadJoins(t *testing.T) {
	h := header(`RateLimit: "a";r=1;t=2;pk=:QQ:, "a";r=3;pk=:Qg:, "b";r=4`,
		`RateLimit-Policy: "a";q=7, "a";q=8;pk=:QQ:, "b";q=9;w=60, "c";q=1`)
	const want = `a r1 t2 pk"A" q8 requests, a r3 pk"B" q7 requests, b r4 q9 w60 requests, c q1 requests`
	if got := show1(headers.Read(http.StatusOK, h, at)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		line string
		want time.Duration
	}{
		{`RateLimit: "a";r=50;t=30`, 600 * ms}, {`RateLimit: "a";r=0;t=30`, 30 * time.Second}, {`RateLimit: "a";r=0`, 0},
		{`RateLimit-Policy: "a";q=10;w=5`, 500 * ms}, {`RateLimit-Policy: "a";q=0;w=5`, 0}, {`RateLimit-Policy: "a";q=3`, 0},
	} {
		f := headers.Read(http.StatusOK, header(tt.line), at)
		if got := f.Limits[0].Pace(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.line, got, tt.want)
		}
	}
}

// TestReadWhatWasWritten: Read reads back the worked examples of the writer.
func TestReadWhatWasWritten(t *testing.T) {
	for _, tt := range vectors(t) {
		for _, d := range []headers.Dialect{headers.Draft, headers.SeparateFields, headers.XRateLimit} {
			f := headers.Read(http.StatusTooManyRequests, write(d, tt.resp), at)
			if len(f.Malformed) > 0 {
				t.Errorf("%s, %v: malformed %q", tt.name, d, f.Malformed)
			}
			if want := write(d, tt.resp).Get("Retry-After"); want != "" && strconv.Itoa(int(f.Wait/time.Second)) != want {
				t.Errorf("%s, %v: got %v, want %s s", tt.name, d, f.Wait, want)
			}
		}
	}
}
