// The options of leases.

package shared

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/redistest"
)

func TestLeaseOptionsNameEveryMistake(t *testing.T) {
	_, err := New(redistest.Start(t).Client(), &Options{DenyCacheKeys: -2, Lease: &LeaseOptions{
		Policies: []string{"orders", "a b"}, Share: 51, Hold: time.Millisecond, HotAt: 9, MaxKeys: -1,
	}})
	for _, want := range []string{
		"DenyCacheKeys is -2", `shared: Lease.Policies: the name "a b"`, "shared: Lease.Share is 51",
		"shared: Lease.Hold is 1ms", "shared: Lease.HotAt is 9", "shared: Lease.MaxKeys is -1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

// The defaults are the documented ones.
func TestLeaseDefaults(t *testing.T) {
	got := LeaseOptions{}.withDefaults()
	if got.Share != 10 || got.Hold != 100*time.Millisecond || got.HotAt != 500 || got.MaxKeys != 1_000 {
		t.Errorf("got %+v, want a tenth, 100 ms, 500 and 1 000", got)
	}
}

// Close leaves no goroutine behind, with leases or without.
func TestLimitersEndTheirGoroutines(t *testing.T) {
	client := redistest.Start(t).Client()
	before := goleak.IgnoreCurrent()
	for _, o := range []*Options{nil, {}, {Lease: &LeaseOptions{}}, {Lease: &LeaseOptions{}, Now: time.Now}} {
		l, err := New(client, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	}
}
