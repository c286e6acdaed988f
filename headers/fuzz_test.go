package headers_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/draw"
)

// FuzzWrite lets the fuzzer choose the arguments that the property test draws.
func FuzzWrite(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		d, subjects, resp := drawResponse(t, draw.From(data))
		h := write(d, resp)
		if err := audit(d, subjects, resp, h); err != nil {
			t.Fatalf("%v\n%s", err, dump(h))
		}
	})
}

// FuzzNewQuota makes sure that NewQuota returns an error, or a quota that reads
// back.
func FuzzNewQuota(f *testing.F) {
	f.Add("default", int64(100), int64(100), int64(time.Minute), true, "")
	f.Add("per \"user\" \\ x", int64(10), int64(0), int64(0), false, "concurrent-requests")
	f.Add("naïve", int64(-1), int64(1), int64(-1), false, "\x00")
	f.Add("slow", int64(999_999_999_999_999), int64(1), int64(headers.Never), true, "requests")
	f.Fuzz(func(t *testing.T, name string, limit, requests, window int64, continuous bool, unit string) {
		s := subject{config: headers.QuotaConfig{
			Name: name, Limit: limit, Requests: requests, Window: time.Duration(window), Continuous: continuous, Unit: unit,
		}}
		q, err := headers.NewQuota(s.config)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "headers: quota \"") {
					t.Errorf("got line %q", line)
				}
			}
			return
		}
		if unit == "requests" {
			unit = ""
		}
		want := policyItem{name: name, q: limit, w: s.window(), unit: unit}
		if items, err := readPolicies([]string{policyOf(q)}); err != nil || !slices.Equal(items, []policyItem{want}) {
			t.Errorf("%s: got %+v, %v, want %+v", policyOf(q), items, err, want)
		}
	})
}

// FuzzRetryAfter makes sure that one line of digits is left after any lines of
// an outer handler, and that it is never below the wait.
func FuzzRetryAfter(f *testing.F) {
	for _, tt := range retryAfterLines {
		f.Add(strings.Join(tt.lines, "\n"), int64(4001*ms))
	}
	f.Fuzz(func(t *testing.T, lines string, wait int64) {
		h := http.Header{"Retry-After": strings.Split(lines, "\n")}
		headers.Draft.Write(h, headers.Response{Denied: true, RetryAfter: time.Duration(wait)})
		if time.Duration(wait) == headers.Never {
			if len(h) > 0 {
				t.Errorf("got %q, want none", h)
			}
			return
		}
		got := h["Retry-After"]
		if len(got) != 1 {
			t.Fatalf("got %q", got)
		}
		least := min(max(ceil(seconds(time.Duration(wait))), 1), maxWait)
		n, err := strconv.ParseInt(got[0], 10, 32)
		if err != nil || n < least || n > maxWait || strconv.FormatInt(n, 10) != got[0] {
			t.Errorf("got %q, want at least %d", got, least)
		}
	})
}

// FuzzScalars makes sure that the numbers of an outer limiter stay as a whole, or
// give way as a whole.
func FuzzScalars(f *testing.F) {
	f.Add("100", "42", "7", int64(3))
	f.Add("10, 10;w=1", "-1", "", int64(3))
	f.Add("999999999999999999999", "0", "x", int64(3))
	f.Fuzz(func(t *testing.T, limit, remaining, reset string, r int64) {
		outer := []string{limit, remaining, reset}
		h := http.Header{"Ratelimit-Limit": {limit}, "Ratelimit-Remaining": {remaining}, "Ratelimit-Reset": {reset}}
		resp := admitted(headers.State{Quota: window(t, "a", 10, time.Minute), Remaining: r, ResetAfter: time.Second})
		headers.SeparateFields.Write(h, resp)
		got := slices.Concat(h["Ratelimit-Limit"], h["Ratelimit-Remaining"], h["Ratelimit-Reset"])
		ours := []string{"10", strconv.FormatInt(min(max(r, 0), 10), 10), "1"}
		if !slices.Equal(got, ours) && !slices.Equal(got, outer) {
			t.Errorf("got %q, want %q or %q", got, ours, outer)
		}
	})
}

// FuzzParseDialect makes sure that ParseDialect returns an error, or a Dialect that
// reads back.
func FuzzParseDialect(f *testing.F) {
	for _, seed := range []string{"", "draft", "draft, separate,x-ratelimit", "Draft", ",", "draft;draft", "separate,separate"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := headers.ParseDialect(s)
		if (err == nil) != (d != 0) {
			t.Fatalf("got %d, %v", uint8(d), err)
		}
		if err != nil {
			return
		}
		if again, err := headers.ParseDialect(d.String()); err != nil || again != d || d.Validate() != nil {
			t.Errorf("got %v, %v, want %v", again, err, d)
		}
	})
}
