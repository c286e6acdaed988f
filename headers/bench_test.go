package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// cases feed both the benchmarks and the test of allocations.
//
// However many fields there are, their values are parts of one string, and
// their lines parts of one slice: two allocations. A response whose values are
// all ready has none. (The header's map is the server's.)
func cases(t testing.TB) []benchCase {
	user := headers.State{Quota: bucket(t, "peruser", 100, time.Minute), Remaining: 42, ResetAfter: 34800 * ms}
	hour := headers.State{Quota: window(t, "hourly", 1000, time.Hour), Remaining: 900, ResetAfter: 30 * time.Minute}
	global := headers.State{Quota: bucket(t, "global", 5000, time.Minute), Remaining: 4310, ResetAfter: 8280 * ms}
	no := user
	no.Denied, no.RetryAfter = true, 1800*ms
	keyed := user
	keyed.PartitionKey = make([]byte, 16)
	const all = headers.Draft | headers.Triple | headers.X
	return []benchCase{
		{"undecided", headers.Draft, headers.Response{Quotas: []*headers.Quota{user.Quota}}, 0},
		{"admitted/1/draft", headers.Draft, admitted(user), 0},
		{"admitted/1/draft+triple", headers.Draft | headers.Triple, admitted(user), 2},
		{"admitted/1/all", all, admitted(user), 2},
		{"admitted/1/pk", headers.Draft, admitted(keyed), 2},
		{"admitted/3/draft", headers.Draft, admitted(user, hour, global), 2},
		{"admitted/3/draft+triple", headers.Draft | headers.Triple, admitted(user, hour, global), 2},
		{"denied/1/draft", headers.Draft, denied(no), 0},
		{"denied/1/draft+triple", headers.Draft | headers.Triple, denied(no), 2},
		{"denied/3/all", all, denied(hour, no, global), 2},
	}
}

type benchCase struct {
	name    string
	dialect headers.Dialect
	resp    headers.Response
	allocs  float64
}

func TestAllocations(t *testing.T) {
	h := http.Header{}
	for _, tt := range cases(t) {
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			tt.dialect.Write(h, tt.resp)
		}); got != tt.allocs {
			t.Errorf("%s: got %v allocations, want %v", tt.name, got, tt.allocs)
		}
	}
	// The body of a denial, its lines in the header, and the hash have a
	// buffer, a slice, and nothing.
	for name, tt := range map[string]struct {
		allocs float64
		run    func()
	}{
		"QuotaExceeded": {1, func() { headers.QuotaExceeded("peruser", "hourly") }},
		"Problem":       {1, func() { headers.Problem(http.StatusServiceUnavailable) }},
		"SetProblem":    {1, func() { headers.SetProblem(h) }},
		"Jitter":        {0, func() { headers.Jitter(time.Second, "peruser", "usr=42", 1795262460) }},
	} {
		if got := testing.AllocsPerRun(100, tt.run); got != tt.allocs {
			t.Errorf("%s: got %v allocations, want %v", name, got, tt.allocs)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, bb := range cases(b) {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			h := http.Header{}
			for b.Loop() {
				clear(h)
				bb.dialect.Write(h, bb.resp)
			}
		})
	}
}

// BenchmarkDenial is a denial as a middleware writes it, body and jitter
// included.
func BenchmarkDenial(b *testing.B) {
	q := window(b, "peruser", 100, time.Minute)
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		clear(h)
		wait := 17301*ms + headers.Jitter(headers.Spread(time.Minute), "peruser", "usr=42", 1795262460)
		headers.Draft.Write(h, headers.Response{
			Quotas:     []*headers.Quota{q},
			States:     []headers.State{{Quota: q, Denied: true, RetryAfter: wait}},
			Denied:     true,
			RetryAfter: wait,
		})
		headers.SetProblem(h)
		headers.QuotaExceeded(q.Name())
	}
}
