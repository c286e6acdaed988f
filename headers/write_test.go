package headers_test

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// TestItems has values of RateLimit beyond the worked examples: W15, W16, the order
// of items, and the bounds of t.
func TestItems(t *testing.T) {
	a := bucket(t, "a", 100, time.Minute)
	b := window(t, "b", 10, time.Minute)
	c := window(t, "c", 100, time.Hour)
	// Their refills are 2^63 and 2^64 ns, longer than a Duration can be. Write takes
	// the longest Duration instead.
	eon, eons := newQuota(t, bucketOf(1<<33, 1, 1<<30)), newQuota(t, bucketOf(1<<34, 1, 1<<30))
	huge := bucket(t, "huge", 999_999_999_999_999, time.Second)
	nobody := newQuota(t, headers.QuotaConfig{Name: "nobody"})
	tests := []struct {
		name string
		resp headers.Response
		want string
	}{
		{"r of 2^60 is clamped", admitted(headers.State{Quota: huge, Remaining: 1 << 60}),
			`"huge";r=999999999999999;t=1`},
		{"r above q is q", admitted(headers.State{Quota: b, Remaining: 11}), `"b";r=10;t=60`},
		{"negative r is 0", admitted(headers.State{Quota: b, Remaining: -5, UnitAfter: 3 * time.Second}), `"b";r=0;t=3`},
		{"least r first", admitted(
			headers.State{Quota: a, Remaining: 9, ResetAfter: time.Minute},
			headers.State{Quota: b, Remaining: 3, ResetAfter: time.Minute},
			headers.State{Quota: c, Remaining: -1, UnitAfter: time.Hour},
		), `"c";r=0;t=3600, "b";r=3;t=60, "a";r=9;t=6`},
		{"given order of equals", admitted(
			headers.State{Quota: a, Remaining: 5}, headers.State{Quota: c, Remaining: 4},
			headers.State{Quota: b, Remaining: 5}, headers.State{Quota: b, Remaining: 4},
		), `"c";r=4;t=144, "b";r=4;t=24, "a";r=5;t=60, "b";r=5;t=30`},
		{"denied ones only, in given order", denied(
			headers.State{Quota: a, Denied: true, Remaining: 9, RetryAfter: 2 * time.Second},
			headers.State{Quota: b, Remaining: 5, ResetAfter: 10 * time.Hour},
			headers.State{Quota: c, Denied: true, RetryAfter: time.Second},
		), `"a";r=9;t=2, "c";r=0;t=1`},
		{"Denied counts in a denied response only", admitted(
			headers.State{Quota: b, Denied: true, Remaining: 2, RetryAfter: time.Hour, ResetAfter: time.Second},
		), `"b";r=2;t=12`},
		{"no unit ever", admitted(headers.State{Quota: b, UnitAfter: headers.Never}), `"b";r=0`},
		{"UnitAfter unknown", admitted(headers.State{Quota: b}), `"b";r=0;t=1`},
		{"nobody", denied(headers.State{Quota: nobody, Denied: true, RetryAfter: headers.Never}), `"nobody";r=0`},
		{"nobody, admitted", admitted(headers.State{Quota: nobody, Remaining: 3}), `"nobody";r=0`},
		{"full bucket", admitted(headers.State{Quota: a, Remaining: 100}), `"a";r=100;t=60`},
		{"bucket with reset unknown", admitted(headers.State{Quota: a, Remaining: 50, ResetAfter: headers.Never}),
			`"a";r=50;t=30`},
		{"bucket in debt", admitted(headers.State{Quota: a, Remaining: 0, ResetAfter: 2 * time.Minute, UnitAfter: time.Minute}),
			`"a";r=0;t=60`},
		{"refill of 2^63 ns", admitted(headers.State{Quota: eon, Remaining: 1}), `"a";r=1;t=9223372037`},
		{"refill of 2^64 ns", admitted(headers.State{Quota: eons, Remaining: 1}), `"a";r=1;t=9223372037`},
		{"negative reset", admitted(headers.State{Quota: a, Remaining: 1, ResetAfter: math.MinInt64}), `"a";r=1;t=60`},
		{"window, negative reset", admitted(headers.State{Quota: b, Remaining: 1, ResetAfter: -1}), `"b";r=1;t=6`},
	}
	for _, tt := range tests {
		if got := write(headers.Draft, tt.resp).Get("RateLimit"); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestManyPolicies makes sure that Write handles more policies than its buffers
// hold.
func TestManyPolicies(t *testing.T) {
	var states []headers.State
	for range 100 {
		states = append(states, headers.State{
			Quota: bucket(t, strings.Repeat("n", 64), 100, time.Minute), Remaining: int64(100 - len(states)),
		})
	}
	h := write(headers.Draft, admitted(states...))
	limits, err := readLimits(h["Ratelimit"])
	if err != nil || len(limits) != 100 {
		t.Fatalf("got %d items, %v", len(limits), err)
	}
	if !slices.IsSortedFunc(limits, func(a, b limitItem) int { return cmp.Compare(a.r, b.r) }) || limits[0].r != 1 {
		t.Errorf("got %+v, want them sorted", limits)
	}
	if policies, err := readPolicies(h["Ratelimit-Policy"]); err != nil || len(policies) != 100 {
		t.Errorf("got %d policies, %v", len(policies), err)
	}
}

// TestPrivateDenial has a denial by a policy that is not advertised. The response
// has the wait and the policies, and no numbers.
func TestPrivateDenial(t *testing.T) {
	q := bucket(t, "a", 100, time.Minute)
	resp := admitted(headers.State{Quota: q, Remaining: 9, ResetAfter: time.Minute})
	resp.Denied, resp.RetryAfter = true, 1500*ms
	const want = "Ratelimit-Policy: \"a\";q=100;w=60\nRetry-After: 2\n"
	if got := dump(write(headers.Draft|headers.SeparateFields|headers.XRateLimit, resp)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestRetryAfterCoversItems has W27: Retry-After never points before a t, even if
// the caller's own maximum does.
func TestRetryAfterCoversItems(t *testing.T) {
	q := bucket(t, "a", 100, time.Minute)
	for _, tt := range []struct {
		own, state time.Duration
		want       string
	}{
		{0, 7 * time.Second, "7"},
		{9 * time.Second, 7 * time.Second, "9"},
		{9 * time.Second, headers.Never, ""},
		{headers.Never, time.Second, ""},
	} {
		resp := admitted(headers.State{Quota: q, Denied: true, RetryAfter: tt.state})
		resp.Denied, resp.RetryAfter = true, tt.own
		if got := write(headers.Draft, resp).Get("Retry-After"); got != tt.want {
			t.Errorf("%v and %v: got %q, want %q", tt.own, tt.state, got, tt.want)
		}
	}
}

// TestLongerWaitStays makes sure that an inner limiter's denial does not shorten
// the wait of an outer limiter.
func TestLongerWaitStays(t *testing.T) {
	for outer, want := range map[string]string{"2": "10", "10": "10", "11": "11", "Sat, 21 Nov 2026 12:00:30 GMT": "10"} {
		for _, d := range []headers.Dialect{headers.Draft, headers.Draft | headers.XRateLimit} {
			h := http.Header{"Retry-After": {outer}}
			d.Write(h, denied(headers.State{Quota: bucket(t, "a", 100, time.Minute), Denied: true, RetryAfter: 10 * time.Second}))
			if got := h["Retry-After"]; len(got) != 1 || got[0] != want {
				t.Errorf("%v: got %q after %s, want %s", d, got, outer, want)
			}
		}
	}
}

// TestStacked has W20 to W22: limiters in front of each other.
func TestStacked(t *testing.T) {
	outer := window(t, "outer", 10, time.Minute)
	inner := window(t, "inner", 1000, time.Hour)
	third := window(t, "third", 5, time.Hour)
	h := http.Header{}
	headers.Draft.Write(h, admitted(headers.State{Quota: outer, Remaining: 3}))
	headers.Draft.Write(h, admitted(headers.State{Quota: inner, Remaining: 900}))
	if _, ok := h["Retry-After"]; ok {
		t.Error("an admitted response has Retry-After")
	}
	if got := len(h["Ratelimit"]); got != 2 {
		t.Errorf("got %d lines of RateLimit, want 2", got)
	}
	headers.Draft.Write(h, denied(headers.State{Quota: third, Denied: true, RetryAfter: time.Second}))
	limits, err := readLimits(h["Ratelimit"])
	if err != nil || len(limits) != 1 || limits[0].name != "third" {
		t.Errorf("got %+v, %v, want the limiter that denied", limits, err)
	}
	policies, err := readPolicies(h["Ratelimit-Policy"])
	if err != nil || len(policies) != 3 || policies[0].name != "outer" || policies[2].name != "third" {
		t.Errorf("got %+v, %v", policies, err)
	}
	// The outer quota's own line is unchanged.
	if got := write(headers.Draft, admitted(headers.State{Quota: outer})); len(got["Ratelimit-Policy"]) != 1 {
		t.Errorf("got %q", got["Ratelimit-Policy"])
	}
}

// TestInnerDenial: in a denial, the largest t equals Retry-After, and no field tells of units that are left, whichever
// dialects an outer limiter has, and whether the inner one has numbers of its own.
func TestInnerDenial(t *testing.T) {
	day, second := window(t, "day", 1000, 24*time.Hour), bucket(t, "second", 1, 10*time.Second)
	for outer := range headers.Dialect(8) {
		for inner := range headers.Dialect(8) {
			for _, states := range [][]headers.State{nil, {{Quota: second, Denied: true, RetryAfter: 10 * time.Second}}} {
				h := http.Header{}
				outer.Write(h, admitted(headers.State{Quota: day, Remaining: 998, ResetAfter: 80_000 * time.Second}))
				resp := denied(states...)
				resp.RetryAfter = 10 * time.Second
				inner.Write(h, resp)
				want := write(inner, resp)
				for _, key := range []string{"Ratelimit", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
					if !slices.Equal(h[key], want[key]) {
						t.Errorf("%v in %v: %s: got %q, want %q", inner, outer, key, h[key], want[key])
					}
				}
			}
		}
	}
}

// TestSharedLines makes sure that the lines of one response do not run into
// each other, or into the next response, when a handler adds to one of them.
func TestSharedLines(t *testing.T) {
	q := bucket(t, "a", 100, time.Minute)
	resp := denied(headers.State{Quota: q, Denied: true, RetryAfter: time.Second})
	for _, d := range []headers.Dialect{headers.Draft, headers.Draft | headers.SeparateFields | headers.XRateLimit} {
		fresh := func() http.Header { return write(d, resp) }
		want := dump(fresh())
		for key := range fresh() {
			h := fresh()
			h.Add(key, "more")
			h[key] = h[key][:1]
			if got := dump(h); got != want {
				t.Errorf("after adding to %s: got\n%swant\n%s", key, got, want)
			}
		}
		if got := dump(fresh()); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// TestSparedCapacity makes sure that Write adds no line behind the end of a slice,
// because other requests may share its array.
func TestSparedCapacity(t *testing.T) {
	shared := []string{`"cdn";r=1`, "not ours"}
	h := http.Header{"Ratelimit": shared[:1]}
	headers.Draft.Write(h, admitted(headers.State{Quota: bucket(t, "a", 100, time.Minute), Remaining: 1}))
	if shared[1] != "not ours" || len(h["Ratelimit"]) != 2 {
		t.Errorf("got %q and %q", shared, h["Ratelimit"])
	}
}
