package headers_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

const ms = time.Millisecond

// vectors are worked examples of the fields, byte for byte. If an example has a
// bucket's credit, the State has the equivalent: the time until the bucket is full
// (w less the credit), and its units.
func vectors(t testing.TB) []vector {
	p := bucket(t, "default", 100, time.Minute)
	user := bucket(t, "peruser", 100, time.Minute)
	global := bucket(t, "global", 5000, time.Minute)
	fixed := window(t, "peruser", 100, time.Minute)
	hourly := window(t, "hourly", 1000, time.Hour)
	monthly := window(t, "monthly", 1_000_000, 30*24*time.Hour)
	inflight := newQuota(t, headers.QuotaConfig{Name: "inflight", Limit: 10, Unit: "concurrent-requests"})
	blocked := newQuota(t, headers.QuotaConfig{Name: "blocked", Window: time.Minute})
	odd := newQuota(t, headers.QuotaConfig{Name: `per "user" \ x`, Limit: 10, Unit: "concurrent-requests"})

	const policy = "Ratelimit-Policy: \"default\";q=100;w=60\n"
	const month = "Ratelimit-Policy: \"monthly\";q=1000000;w=2592000\n"
	some := headers.State{Quota: user, Remaining: 42, ResetAfter: 34800 * ms}
	return []vector{
		{"E1 first request", admitted(headers.State{Quota: p, Remaining: 99, ResetAfter: 600 * ms}),
			"Ratelimit: \"default\";r=99;t=60\n" + policy},
		{"E1b after 58", admitted(headers.State{Quota: p, Remaining: 42, ResetAfter: 34800 * ms}),
			"Ratelimit: \"default\";r=42;t=26\n" + policy},
		{"E1c last unit spent", admitted(headers.State{Quota: p, ResetAfter: time.Minute, UnitAfter: 600 * ms}),
			"Ratelimit: \"default\";r=0;t=1\n" + policy},
		{"E1d just before a unit", admitted(headers.State{Quota: p, ResetAfter: 59400*ms + 1, UnitAfter: 1}),
			"Ratelimit: \"default\";r=0;t=1\n" + policy},
		{"E1d just at a unit", admitted(headers.State{Quota: p, Remaining: 1, ResetAfter: 59400 * ms}),
			"Ratelimit: \"default\";r=1;t=1\n" + policy},
		{"E1e slow", admitted(headers.State{
			Quota: bucket(t, "slow", 6, time.Minute), ResetAfter: 59700 * ms, UnitAfter: 9700 * ms,
		}), "Ratelimit: \"slow\";r=0;t=10\nRatelimit-Policy: \"slow\";q=6;w=60\n"},
		{"E2 two policies", admitted(some, headers.State{Quota: global, Remaining: 4310, ResetAfter: 8280 * ms}),
			"Ratelimit: \"peruser\";r=42;t=26, \"global\";r=4310;t=52\n" +
				"Ratelimit-Policy: \"peruser\";q=100;w=60, \"global\";q=5000;w=60\n"},
		{"E4 cost 5", admitted(headers.State{Quota: p, Remaining: 95, ResetAfter: 3 * time.Second}),
			"Ratelimit: \"default\";r=95;t=57\n" + policy},
		{"E4 cost 5 denied", denied(e4(p)),
			"Ratelimit: \"default\";r=2;t=2\n" + policy + "Retry-After: 2\n"},
		{"E4 cost above q", denied(headers.State{
			Quota: p, Denied: true, Remaining: 42, RetryAfter: headers.Never, ResetAfter: 34800 * ms,
		}), "Ratelimit: \"default\";r=42\n" + policy},
		{"E5 jitter", denied(headers.State{Quota: fixed, Denied: true, RetryAfter: 21301 * ms}),
			"Ratelimit: \"peruser\";r=0;t=22\nRatelimit-Policy: \"peruser\";q=100;w=60\nRetry-After: 22\n"},
		{"E5 no jitter", denied(headers.State{Quota: fixed, Denied: true, RetryAfter: 17301 * ms}),
			"Ratelimit: \"peruser\";r=0;t=18\nRatelimit-Policy: \"peruser\";q=100;w=60\nRetry-After: 18\n"},
		{"E5b end of a window", admitted(headers.State{Quota: fixed, Remaining: 90, ResetAfter: time.Second}),
			"Ratelimit: \"peruser\";r=90;t=54\nRatelimit-Policy: \"peruser\";q=100;w=60\n"},
		{"E5c two violated", denied(
			headers.State{Quota: p, Denied: true, RetryAfter: 600 * ms},
			headers.State{Quota: hourly, Denied: true, RetryAfter: 41 * time.Second},
		), "Ratelimit: \"default\";r=0;t=1, \"hourly\";r=0;t=41\n" +
			"Ratelimit-Policy: \"default\";q=100;w=60, \"hourly\";q=1000;w=3600\nRetry-After: 41\n"},
		{"E6 undecided", headers.Response{Quotas: []*headers.Quota{p}, Now: at}, policy},
		{"E7 long window", admitted(headers.State{Quota: monthly, Remaining: 250_000, ResetAfter: 1054800 * time.Second}),
			"Ratelimit: \"monthly\";r=250000;t=1054800\n" + month},
		{"E7 capped", admitted(headers.State{Quota: monthly, Remaining: 900_000, ResetAfter: 259200 * time.Second}),
			"Ratelimit: \"monthly\";r=900000;t=2332800\n" + month},
		{"E7 denied", denied(headers.State{Quota: monthly, Denied: true, RetryAfter: 1054800 * time.Second}),
			"Ratelimit: \"monthly\";r=0;t=1054800\n" + month + "Retry-After: 1054800\n"},
		{"E7 14 days", denied(headers.State{Quota: monthly, Denied: true, RetryAfter: 1209600 * time.Second}),
			"Ratelimit: \"monthly\";r=0;t=1209600\n" + month + "Retry-After: 1209600\n"},
		{"E7 clamped", denied(headers.State{Quota: monthly, Denied: true, RetryAfter: 2592000 * time.Second}),
			"Ratelimit: \"monthly\";r=0;t=1209600\n" + month + "Retry-After: 1209600\n"},
		{"E7 clamped beside r", denied(headers.State{Quota: monthly, Denied: true, Remaining: 7, RetryAfter: 2592000 * time.Second}),
			"Ratelimit: \"monthly\";r=7;t=1209600\n" + month + "Retry-After: 1209600\n"},
		{"E7 last unit spent", admitted(headers.State{
			Quota: monthly, ResetAfter: 2592000 * time.Second, UnitAfter: 2592000 * time.Second,
		}), "Ratelimit: \"monthly\";r=0;t=1209600\n" + month},
		{"E8 unlimited", headers.Response{}, ""},
		{"E9 zero quota", denied(headers.State{Quota: blocked, Denied: true, RetryAfter: headers.Never}),
			"Ratelimit: \"blocked\";r=0\nRatelimit-Policy: \"blocked\";q=0;w=60\n"},
		{"E10 concurrency", admitted(headers.State{Quota: inflight, Remaining: 3}),
			"Ratelimit: \"inflight\";r=3\nRatelimit-Policy: \"inflight\";q=10;qu=\"concurrent-requests\"\n"},
		{"E10 denied", denied(headers.State{Quota: inflight, Denied: true, RetryAfter: time.Second}),
			"Ratelimit: \"inflight\";r=0\nRatelimit-Policy: \"inflight\";q=10;qu=\"concurrent-requests\"\n" +
				"Retry-After: 1\n"},
		{"E11 escaping", headers.Response{States: []headers.State{{Quota: odd, Remaining: 3}}},
			"Ratelimit: \"per \\\"user\\\" \\\\ x\";r=3\n"},
	}
}

type vector struct {
	name string
	resp headers.Response
	want string
}

// e4 is the state of a request of cost 5 at a credit of 1.2 s: 2 units are
// there, and 3 s are needed.
func e4(q *headers.Quota) headers.State {
	return headers.State{Quota: q, Denied: true, Remaining: 2, RetryAfter: 1800 * ms, ResetAfter: 58800 * ms}
}

func TestVectors(t *testing.T) {
	for _, tt := range vectors(t) {
		if got := dump(write(headers.Draft, tt.resp)); got != tt.want {
			t.Errorf("%s:\ngot\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestVectorE12 has the scalars beside, at a bucket that is full in 34.8 s.
func TestVectorE12(t *testing.T) {
	resp := admitted(headers.State{
		Quota: bucket(t, "default", 100, time.Minute), Remaining: 42, ResetAfter: 34800 * ms,
	})
	const items = "Ratelimit: \"default\";r=42;t=26\n"
	const triple = "Ratelimit-Limit: 100\n"
	const rest = "Ratelimit-Policy: \"default\";q=100;w=60\nRatelimit-Remaining: 42\nRatelimit-Reset: 35\n"
	const x = "X-Ratelimit-Limit: 100\nX-Ratelimit-Remaining: 42\nX-Ratelimit-Reset: 1795262435\n"
	tests := []struct {
		dialect headers.Dialect
		want    string
	}{
		{headers.Draft | headers.SeparateFields | headers.XRateLimit, items + triple + rest + x},
		{headers.Draft | headers.SeparateFields, items + triple + rest},
		{0, items + triple + rest},
		{headers.SeparateFields, triple + rest},
		{headers.XRateLimit, x},
		{0x80, ""},
	}
	for _, tt := range tests {
		if got := dump(write(tt.dialect, resp)); got != tt.want {
			t.Errorf("%v: got\n%swant\n%s", tt.dialect, got, tt.want)
		}
	}
}

// TestVectorFloats has W19: a third of a second is no float's, and the last
// nanosecond before the second unit is not the second unit. The units are the
// limiter's to count; the time must not lose the nanosecond either.
func TestVectorFloats(t *testing.T) {
	q := bucket(t, "thirds", 3, time.Second)
	for _, tt := range []struct {
		r     int64
		reset time.Duration
		want  string
	}{
		{1, time.Second - 666_666_666, `"thirds";r=1;t=1`},
		{2, time.Second - 666_666_667, `"thirds";r=2;t=1`},
	} {
		h := write(headers.Draft, admitted(headers.State{Quota: q, Remaining: tt.r, ResetAfter: tt.reset}))
		if got := h.Get("RateLimit"); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	// A bucket of 3 per 10 s holds 2 for 6.666… s: 7, and with a nanosecond
	// more than 7 s of credit, 8.
	slow := bucket(t, "thirds", 3, 10*time.Second)
	for credit, want := range map[time.Duration]string{
		6_666_666_667:     `"thirds";r=2;t=7`,
		7 * time.Second:   `"thirds";r=2;t=7`,
		7*time.Second + 1: `"thirds";r=2;t=8`,
	} {
		h := write(headers.Draft, admitted(headers.State{Quota: slow, Remaining: 2, ResetAfter: 10*time.Second - credit}))
		if got := h.Get("RateLimit"); got != want {
			t.Errorf("credit %v: got %s, want %s", credit, got, want)
		}
	}
}
