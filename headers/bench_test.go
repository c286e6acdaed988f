package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// cases feed both the benchmarks and the test of allocations.
//
// All values of a response are parts of one string, and all lines are parts of one
// slice: two allocations. A response whose values are all ready has none. (The
// server allocates the map.)
func cases(t testing.TB) []benchCase {
	user := headers.State{Quota: bucket(t, "peruser", 100, time.Minute), Remaining: 42, ResetAfter: 34800 * ms}
	hour := headers.State{Quota: window(t, "hourly", 1000, time.Hour), Remaining: 900, ResetAfter: 30 * time.Minute}
	global := headers.State{Quota: bucket(t, "global", 5000, time.Minute), Remaining: 4310, ResetAfter: 8280 * ms}
	no := user
	no.Denied, no.RetryAfter = true, 1800*ms
	const all = headers.Draft | headers.SeparateFields | headers.XRateLimit
	return []benchCase{
		{"undecided", headers.Draft, headers.Response{Quotas: []*headers.Quota{user.Quota}}, 0},
		{"admitted/1/draft", headers.Draft, admitted(user), 0},
		{"admitted/1/draft+separate", headers.Draft | headers.SeparateFields, admitted(user), 0},
		{"admitted/1/all", all, admitted(user), 0},
		{"admitted/3/draft", headers.Draft, admitted(user, hour, global), 1},
		{"admitted/3/draft+separate", headers.Draft | headers.SeparateFields, admitted(user, hour, global), 1},
		{"denied/1/draft", headers.Draft, denied(no), 0},
		{"denied/1/draft+separate", headers.Draft | headers.SeparateFields, denied(no), 0},
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
	var q headers.Quota // each response has another one
	resp := admitted(headers.State{Quota: &q, Remaining: 7, ResetAfter: time.Minute})
	if got := testing.AllocsPerRun(100, func() {
		clear(h)
		if err := q.Set(headers.QuotaConfig{Name: "plan", Limit: 100, Requests: 100, Window: time.Minute, Continuous: true}); err != nil {
			t.Fatal(err)
		}
		headers.Draft.Write(h, resp)
	}); got != 1 {
		t.Errorf("Set: got %v allocations, want 1", got)
	}
	for _, tt := range cases(t) {
		if got := testing.AllocsPerRun(100, func() {
			clear(h)
			tt.dialect.Write(h, tt.resp)
		}); got != tt.allocs {
			t.Errorf("%s: got %v allocations, want %v", tt.name, got, tt.allocs)
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
