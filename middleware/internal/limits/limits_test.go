package limits

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

func TestNew(t *testing.T) {
	l := algorithms.Concurrent(5, time.Minute)
	if got, err := New("p", l, false); err != nil || got.Limit != l || got.Quota != nil {
		t.Errorf("got %+v, error %v, want a concurrent limit without a quota", got, err)
	}
	if got, err := New("p", algorithms.TokenBucket(5, time.Minute), true); err != nil || got.Quota == nil {
		t.Errorf("got %+v, error %v, want a limit with a quota", got, err)
	}
}

func TestQuotaConfig(t *testing.T) {
	for want, l := range map[headers.QuotaConfig]algorithms.Limit{
		{Name: "p", Limit: 5, Unit: "concurrent-requests"}:                                                                                             algorithms.Concurrent(5, time.Minute),
		{Name: "p", Limit: 5, Requests: 5, Window: time.Minute, Continuous: true}:                                                                      algorithms.TokenBucket(5, time.Minute),
		{Name: "p", Limit: 5, Requests: 5, Window: time.Minute}:                                                                                        algorithms.FixedWindow(5, time.Minute),
		{Name: "p", Limit: 5, Requests: 5, Window: algorithms.PerMonth(5, nil).Window(), Calendar: algorithms.PerMonth(5, nil).Algorithm().Calendar()}: algorithms.PerMonth(5, nil),
	} {
		if got := QuotaConfig("p", l); got != want {
			t.Errorf("%v: got %+v, want %+v", l, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	leaky, concurrent := algorithms.LeakyBucket(1, time.Second), algorithms.Concurrent(1, time.Minute)
	bucket := algorithms.TokenBucket(1, time.Second)
	for _, all := range [][]algorithms.Limit{nil, {leaky, leaky, bucket}, {concurrent, bucket, concurrent}, {leaky, bucket, concurrent}} {
		var k Kinds
		for _, l := range all {
			k.Add(l)
		}
		excluded := len(all) == 3 && all[0] != all[1] && all[0] != all[2]
		if err := k.Validate(); (err != nil) != excluded {
			t.Errorf("%v: got error %v, want one: %t", all, err, excluded)
		}
	}
}

// TestValidate: each reason is reported, once.
func TestValidate(t *testing.T) {
	short := algorithms.Concurrent(1, settle.MinHold-time.Millisecond)
	leaky := algorithms.LeakyBucket(1, time.Second)
	for _, tt := range []struct {
		all          []algorithms.Limit
		chargesLater bool
		want         int
	}{
		{nil, true, 0},
		{[]algorithms.Limit{algorithms.TokenBucket(1, time.Second), {}}, true, 0},
		{[]algorithms.Limit{leaky}, false, 0},
		{[]algorithms.Limit{leaky, leaky}, true, 1},
		{[]algorithms.Limit{algorithms.Concurrent(1, time.Minute)}, false, 0},
		{[]algorithms.Limit{algorithms.Concurrent(1, settle.MinHold), leaky}, true, 2},
		{[]algorithms.Limit{short}, false, 1},
		{[]algorithms.Limit{short}, true, 2},
	} {
		err := Validate(tt.chargesLater, tt.all...)
		got := 0
		if err != nil {
			got = strings.Count(err.Error(), "\n") + 1
		}
		if got != tt.want {
			t.Errorf("%v: got %d reasons, want %d: %v", tt.all, got, tt.want, err)
		}
	}
}
