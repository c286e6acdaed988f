// The options, the statistics, and what Close leaves behind.

package lease

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestNewNamesEveryMisconfiguration(t *testing.T) {
	l, err := New(nil, &Options{Policies: []string{"orders", "a b"}, Share: 51, Hold: time.Millisecond, HotAt: 9, MaxKeys: -1})
	for _, want := range []string{
		"lease: the limiter is nil", `lease: Policies: the name "a b"`, "lease: Share is 51; want per cent from 1 to 50",
		"lease: Hold is 1ms; want 10ms to 1s", "lease: HotAt is 9", "lease: MaxKeys is -1",
	} {
		if l != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "orders") {
		t.Errorf("got %v, want nothing about valid values", err)
	}
	if l, err := New(nil, nil); l != nil || err == nil {
		t.Errorf("got %v, %v, want an error: there is no limiter", l, err)
	}
}

// The defaults are the documented ones.
func TestDefaults(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		got, err := o.resolved()
		if err != nil || got.Share != 10 || got.Hold != 100*time.Millisecond || got.HotAt != 500 || got.MaxKeys != 1_000 || len(got.Policies) > 0 {
			t.Errorf("got %+v, %v, want a tenth, 100 ms, 500 and 1 000", got, err)
		}
	}
}

// A Limiter does not follow changes of its caller's options.
func TestOptionsAreCopied(t *testing.T) {
	o := Options{Policies: []string{"orders"}}
	got, _ := o.resolved()
	o.Policies[0] = "other"
	if got.Policies[0] != "orders" {
		t.Errorf("got policies %v", got.Policies)
	}
}

// hidden is a limiter without statistics around another limiter.
type hidden struct{ algorithms.Limiter }

func (h hidden) Unwrap() algorithms.Limiter { return h.Limiter }

// Stats are the wrapped limiter's, also if it is itself wrapped.
func TestStatsAreTheWrappedLimiters(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	take(t, memory, "usr=1", algorithms.TokenBucket(10, time.Minute), 1)
	for name, tt := range map[string]struct {
		limiter algorithms.Limiter
		keys    int
	}{
		"memory":             {memory, 1},
		"wrapped":            {hidden{hidden{memory}}, 1},
		"without statistics": {limitertest.NewFake(), 0},
		"around nothing":     {hidden{}, 0},
	} {
		l, err := New(tt.limiter, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Stats(); got.Memory.Keys != tt.keys || got.Lease.Keys != 0 {
			t.Errorf("%s: got %+v, want %d keys in memory", name, got, tt.keys)
		}
		if l.Unwrap() != tt.limiter {
			t.Errorf("%s: got another limiter from Unwrap", name)
		}
	}
}

// A decision that not all processes share is never leased.
func TestMemoryIsNotLeased(t *testing.T) {
	l, err := New(algorithms.NewMemory(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 1_000 {
		take(t, l, "usr=1", algorithms.TokenBucket(1_000_000, time.Second), 1)
	}
	if got := l.Stats().Lease; leaseStats(got) != (leaseStats{}) {
		t.Errorf("got %+v, want nothing leased", got)
	}
}

// Close leaves no goroutine behind, whether keys are hot or not.
func TestCloseEndsGoroutines(t *testing.T) {
	client := redistest.Start(t).Client()
	before := goleak.IgnoreCurrent()
	for _, limit := range []algorithms.Limit{{}, algorithms.TokenBucket(1_000_000, time.Second)} {
		limiter, err := shared.New(client, &shared.Options{Deadline: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(limiter, &Options{HotAt: 10})
		if err != nil {
			t.Fatal(err)
		}
		for limit.Requests() > 0 && l.Stats().Lease.Spent == 0 {
			take(t, l, "usr=1", limit, 1)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	}
}
