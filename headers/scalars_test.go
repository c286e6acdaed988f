package headers_test

import (
	"math/big"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/draw"
)

// TestScalars has the State that the scalars describe, and their values.
func TestScalars(t *testing.T) {
	a := bucket(t, "a", 100, time.Minute)
	b := window(t, "b", 10, time.Minute)
	large, small := bucket(t, "large", 1<<40, time.Minute), bucket(t, "small", 1<<24, time.Minute)
	nobody := newQuota(t, headers.QuotaConfig{Name: "nobody"})
	tests := []struct {
		name                    string
		resp                    headers.Response
		limit, remaining, reset string
		epoch                   string
	}{
		{"least r/q, not least r", admitted(
			headers.State{Quota: b, Remaining: 9, ResetAfter: time.Second},
			headers.State{Quota: a, Remaining: 80, ResetAfter: 12 * time.Second},
		), "100", "80", "12", "1795262412"},
		{"first given of equals", admitted(
			headers.State{Quota: b, Remaining: 5, ResetAfter: time.Second},
			headers.State{Quota: a, Remaining: 50, ResetAfter: time.Minute},
		), "10", "5", "1", "1795262401"},
		{"rounded up", admitted(headers.State{Quota: a, Remaining: 1, ResetAfter: 1}), "100", "1", "1", "1795262401"},
		{"full", admitted(headers.State{Quota: a, Remaining: 100}), "100", "100", "0", "1795262400"},
		{"clamped", admitted(headers.State{Quota: b, Remaining: -3, ResetAfter: -1}), "10", "0", "0", "1795262400"},
		{"reset unknown", admitted(headers.State{Quota: b, Remaining: 3, ResetAfter: headers.Never}), "10", "3", "", ""},
		{"products of more than 64 bits", admitted(
			headers.State{Quota: large, Remaining: 1 << 40}, headers.State{Quota: small, Remaining: 1, ResetAfter: 9},
		), "16777216", "1", "1", "1795262401"},
		{"products of more than 64 bits, turned round", admitted(
			headers.State{Quota: small, Remaining: 1, ResetAfter: 9}, headers.State{Quota: large, Remaining: 1 << 40},
		), "16777216", "1", "1", "1795262401"},
		{"nothing of nothing is nearest", admitted(
			headers.State{Quota: b, Remaining: 1}, headers.State{Quota: nobody},
		), "0", "0", "0", "1795262400"},
		{"reset is Retry-After", denied(
			headers.State{Quota: b, Denied: true, RetryAfter: 1500 * ms, ResetAfter: time.Minute},
		), "10", "0", "2", "1795262402"},
		{"longest wait, not least r/q", denied(
			headers.State{Quota: b, Denied: true, RetryAfter: time.Second},
			headers.State{Quota: a, Denied: true, Remaining: 50, RetryAfter: 3 * time.Second},
			headers.State{Quota: nobody, RetryAfter: time.Hour},
		), "100", "50", "3", "1795262403"},
		{"first given of equal waits", denied(
			headers.State{Quota: a, Denied: true, RetryAfter: time.Second},
			headers.State{Quota: b, Denied: true, RetryAfter: time.Second},
		), "100", "0", "1", "1795262401"},
		{"the reset of a denial is at most 14 days", denied(
			headers.State{Quota: b, Denied: true, Remaining: 1, RetryAfter: 400 * 24 * time.Hour},
		), "10", "1", "1209600", "1796472000"},
		{"the reset beside 0 units is at most 14 days", admitted(
			headers.State{Quota: b, ResetAfter: 400 * 24 * time.Hour},
		), "10", "0", "1209600", "1796472000"},
		{"a reset beside some units is not capped", admitted(
			headers.State{Quota: b, Remaining: 1, ResetAfter: 400 * 24 * time.Hour},
		), "10", "1", "34560000", "1829822400"},
		{"never", denied(headers.State{Quota: b, Denied: true, RetryAfter: headers.Never}), "10", "0", "", ""},
	}
	for _, tt := range tests {
		h := write(headers.SeparateFields|headers.XRateLimit, tt.resp)
		for key, want := range map[string]string{
			"RateLimit-Limit": tt.limit, "RateLimit-Remaining": tt.remaining, "RateLimit-Reset": tt.reset,
			"X-RateLimit-Limit": tt.limit, "X-RateLimit-Remaining": tt.remaining, "X-RateLimit-Reset": tt.epoch,
		} {
			if got := h.Get(key); got != want {
				t.Errorf("%s: %s: got %q, want %q", tt.name, key, got, want)
			}
		}
	}
}

// TestEpoch makes sure that the epoch's reset is never rounded down, and that it is
// absent if Now is zero.
func TestEpoch(t *testing.T) {
	q := window(t, "b", 10, time.Minute)
	for _, tt := range []struct {
		now  time.Time
		want string
	}{
		{at, "1795262402"},
		{at.Add(1), "1795262403"},
		{at.Add(time.Second - 1), "1795262403"},
		{at.In(time.FixedZone("", 3600)), "1795262402"},
		{time.Time{}, ""},
	} {
		resp := admitted(headers.State{Quota: q, Remaining: 1, ResetAfter: 1001 * ms})
		resp.Now = tt.now
		h := write(headers.XRateLimit, resp)
		if got := h.Get("X-RateLimit-Reset"); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.now, got, tt.want)
		}
		if got := h.Get("X-RateLimit-Limit"); got != "10" {
			t.Errorf("%v: got limit %q, want 10", tt.now, got)
		}
	}
}

// TestScalarsStacked has the numbers that a response of two limiters keeps.
func TestScalarsStacked(t *testing.T) {
	q := window(t, "b", 10, time.Minute)
	ours := admitted(headers.State{Quota: q, Remaining: 5, ResetAfter: time.Second})
	never := denied(headers.State{Quota: q, Denied: true, RetryAfter: headers.Never})
	const ourNumbers = "10 5 1"
	tests := []struct {
		name, limit, remaining, reset string
		resp                          headers.Response
		want                          string
	}{
		{"outer is nearer", "1000", "499", "7", ours, "1000 499 7"},
		{"ours is nearer", "1000", "501", "7", ours, ourNumbers},
		{"outer stays of equals", "2", "1", "7", ours, "2 1 7"},
		{"outer of nothing", "0", "0", "7", ours, "0 0 7"},
		{"exactly", "999999999999999", "499999999999999", "7", ours, "999999999999999 499999999999999 7"},
		{"unreadable limit", "10, 10;w=1", "1", "7", ours, ourNumbers},
		{"unreadable remaining", "10", "-1", "7", ours, ourNumbers},
		{"a plus is no digit", "10", "+1", "7", ours, ourNumbers},
		{"no remaining", "10", "", "7", ours, ourNumbers},
		{"denial", "1000", "0", "7", denied(headers.State{Quota: q, Denied: true, RetryAfter: 3 * time.Second}), "10 0 3"},
		{"denial for ever takes the reset away", "1000", "499", "7", never, "10 0 "},
	}
	for _, tt := range tests {
		h := http.Header{}
		h.Set("RateLimit-Limit", tt.limit)
		h.Set("RateLimit-Remaining", tt.remaining)
		h.Set("RateLimit-Reset", tt.reset)
		headers.SeparateFields.Write(h, tt.resp)
		got := h.Get("RateLimit-Limit") + " " + h.Get("RateLimit-Remaining") + " " + h.Get("RateLimit-Reset")
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		for _, key := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			if n := len(h.Values(key)); n > 1 {
				t.Errorf("%s: %d lines of %s", tt.name, n, key)
			}
		}
	}
}

// TestScalarsTwice makes sure that Write replaces a family with a line too many,
// because a scalar has one line.
func TestScalarsTwice(t *testing.T) {
	h := http.Header{"X-Ratelimit-Limit": {"10", "10"}, "X-Ratelimit-Remaining": {"0", "0"}}
	headers.XRateLimit.Write(h, admitted(headers.State{Quota: window(t, "b", 10, time.Minute), Remaining: 5}))
	if got := h["X-Ratelimit-Remaining"]; len(got) != 1 || got[0] != "5" {
		t.Errorf("got %q, want 5", got)
	}
}

// TestNearest compares the choice of the State with exact fractions.
func TestNearest(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		var states []headers.State
		var least *big.Rat
		want := 0
		for i := range v.Int(1, 4) {
			limit := v.Int64(1, draw.Of(v, int64(6), 999_999_999_999_999))
			q := bucket(t, strconv.Itoa(i), limit, time.Minute)
			r := v.Int64(0, limit)
			states = append(states, headers.State{Quota: q, Remaining: r, ResetAfter: time.Duration(i) * time.Second})
			if ratio := big.NewRat(r, limit); least == nil || ratio.Cmp(least) < 0 {
				least, want = ratio, i
			}
		}
		h := write(headers.SeparateFields, admitted(states...))
		if got := h.Get("RateLimit-Reset"); got != strconv.Itoa(want) {
			t.Errorf("got State %s, want %d of %+v", got, want, states)
		}
		// The same States, each by a middleware of its own.
		h = http.Header{}
		for _, s := range states {
			headers.SeparateFields.Write(h, admitted(s))
		}
		if got := h.Get("RateLimit-Reset"); got != strconv.Itoa(want) {
			t.Errorf("stacked: got State %s, want %d of %+v", got, want, states)
		}
	})
}
