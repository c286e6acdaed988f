package shares

import (
	"math/big"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/draw"
)

// TestAgreesWithAModel: a tenant is present from its last request for Stay, and at most a tenth longer.
func TestAgreesWithAModel(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		const stay = 5 * time.Second
		table, now := New(stay), time.Duration(0)
		type request struct {
			at     time.Duration
			weight int64
		}
		last := map[uint64]request{}
		for range v.Int(1, 80) {
			now += time.Duration(v.Int64(0, 3_000)) * time.Millisecond
			id, weight := uint64(v.Int64(0, 9)), v.Int64(1, 5)
			got, _ := table.Ask(id, weight, now)
			last[id] = request{now, weight}
			least, most := int64(0), int64(0)
			for _, r := range last {
				if now-r.at < stay {
					least += r.weight
				}
				if now-r.at <= stay+stay/tenths {
					most += r.weight
				}
			}
			tenants, sum := table.Present(now)
			if got < least || got > most || sum != got || int64(tenants) > got {
				t.Fatalf("at %v: got %d of %d tenants, want %d to %d", now, got, tenants, least, most)
			}
		}
		if tenants, sum := table.Present(now + 2*stay); tenants != 0 || sum != 0 {
			t.Errorf("afterwards: got %d tenants of weight %d, want none", tenants, sum)
		}
	})
}

// TestTableIsBounded: further tenants have shares of the whole sum, and the memory is free again afterwards.
func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	table := New(time.Second)
	for id := range uint64(maxTenants + 10) {
		got, _ := table.Ask(id, 1, 0)
		if want := min(int64(id)+1, maxTenants+1); got != want {
			t.Fatalf("tenant %d: got %d, want %d", id, got, want)
		}
	}
	if got, _ := table.Ask(1, 1, 10*time.Second); got != 1 {
		t.Errorf("later: got %d, want the tenant alone", got)
	}
	if table.Ask(1, 1, 0); len(table.tenants) != 1 {
		t.Errorf("got %d tenants, want 1", len(table.tenants))
	}
}

// TestSharesAreExact: their sum is the limit, in rational numbers, and every share admits the cost of its request.
func TestSharesAreExact(t *testing.T) {
	t.Parallel()
	limit := algorithms.TokenBucket(100, time.Second)
	sum := new(big.Rat)
	for _, weight := range []int64{1, 2, 5, 1, 1} {
		share := Of(limit, weight, 10, 1)
		sum.Add(sum, big.NewRat(share.Requests()*int64(time.Second), int64(share.Window())))
		if share.Burst() != 10*weight {
			t.Errorf("weight %d: got a burst of %d, want %d", weight, share.Burst(), 10*weight)
		}
	}
	if sum.Cmp(big.NewRat(100, 1)) != 0 {
		t.Errorf("got shares of %v per second, want 100", sum)
	}
	if got := Of(limit, 1, 1_000, 7).Burst(); got != 7 {
		t.Errorf("got a burst of %d, want the cost 7", got)
	}
}

// TestEveryShareIsValid also for the largest weights, sums and limits.
func TestEveryShareIsValid(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		requests, window := v.Int64(1, 1e9), time.Duration(v.Int64(1, 407*86_400*1e6))*time.Microsecond
		limit := draw.Of(v,
			algorithms.TokenBucket(requests, window), algorithms.FixedWindow(requests, window), algorithms.PerMonth(requests, nil), algorithms.Nobody(),
		)
		if limit.Validate() != nil {
			return
		}
		weight := v.Int64(1, MaxWeight)
		sum := v.Int64(weight, MaxWeight*(maxTenants+1))
		cost := v.Int64(0, 1e9)
		share := Of(limit, weight, sum, cost)
		if err := share.Validate(); err != nil {
			t.Fatalf("%v, %d/%d: %v: %v", limit, weight, sum, share, err)
		}
		fits := share.WithBurst(min(cost, limit.Burst())).Validate() == nil // otherwise no bucket of this rate has that burst
		if fits && share.Burst() < min(cost, limit.Burst()) || share.Burst() > limit.Burst() {
			t.Errorf("%v: got a burst of %d for a cost of %d", limit, share.Burst(), cost)
		}
	})
}

func TestStay(t *testing.T) {
	t.Parallel()
	for limit, want := range map[algorithms.Limit]time.Duration{
		algorithms.TokenBucket(100, time.Second):                5 * time.Second,
		algorithms.TokenBucket(60, time.Minute).WithBurst(20):   20 * time.Second,
		algorithms.TokenBucket(600, time.Hour):                  time.Minute,
		algorithms.PerDay(600, nil):                             time.Minute,
		algorithms.TokenBucket(6_000, time.Minute).WithBurst(1): 5 * time.Second,
		algorithms.Nobody():                                     5 * time.Second,
	} {
		if got := Stay(limit); got != want {
			t.Errorf("%v: got %v, want %v", limit, got, want)
		}
	}
}

func BenchmarkShare(b *testing.B) {
	table, limit := New(5*time.Second), algorithms.TokenBucket(100, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		sum, _ := table.Ask(1, 1, time.Second)
		Of(limit, 1, sum, 1)
	}
}

// TestShareOfAHugeRate: a cost that no bucket of the rate can have as its burst leaves the largest burst that one can have.
func TestShareOfAHugeRate(t *testing.T) {
	t.Parallel()
	share := Of(algorithms.TokenBucket(25_165_827, time.Second), 9, 10, 23_907_537)
	if err := share.Validate(); err != nil || share.WithBurst(share.Burst()+1).Validate() == nil {
		t.Errorf("got %v, %v, want the largest burst that is exact", share, err)
	}
}
