// Leases against a model: whatever instances do, they admit no more than the limit,
// and no unit vanishes.

package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

// A spending is units that were admitted, less the returned units.
type spending struct {
	at    int64 // µs
	units int64
}

// A leaseModel is two instances with leases over one store, and the units that
// they have admitted.
type leaseModel struct {
	fake      *limitertest.Fake
	instances [2]leased
	limit     algorithms.Limit
	latency   atomic.Int64 // of blocks, each way

	spent []spending
	taken []algorithms.Check // the take of each spending
}

func newLeaseModel(t *rapid.T, limit algorithms.Limit, share int) *leaseModel {
	m := &leaseModel{limit: limit, fake: limitertest.NewFake()}
	slow := func(checks []algorithms.Check) {
		if ofBlock(checks) {
			time.Sleep(time.Duration(m.latency.Load()))
		}
	}
	m.fake.Before(func(_ context.Context, checks []algorithms.Check) error { slow(checks); return nil })
	m.fake.After(slow)
	for i := range m.instances {
		m.instances[i] = over(t, m.fake, Options{Share: share})
	}
	return m
}

func (m *leaseModel) allow(t *rapid.T, i int, c algorithms.Check) algorithms.Check {
	checks := []algorithms.Check{c}
	if err := m.instances[i].Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	return checks[0]
}

// take takes units on an instance.
func (m *leaseModel) take(t *rapid.T, i int, cost int64) {
	c := m.allow(t, i, checkOf("usr=1", m.limit, cost))
	if c.Decision.Allowed {
		m.spent = append(m.spent, spending{time.Now().UnixMicro(), cost})
		m.taken = append(m.taken, c)
	}
}

// giveBack returns a part of an earlier take, on any instance.
func (m *leaseModel) giveBack(t *rapid.T, i, which int, units int64) {
	c := m.taken[which]
	units = min(units, c.Decision.Receipt.Units())
	if units == 0 {
		return
	}
	c.Op, c.Cost = algorithms.Return, units
	m.taken[which] = m.allow(t, i, c)
	m.spent[which].units -= units
}

// excess returns by how many units the fullest interval exceeds the limit with a
// larger burst.
func (m *leaseModel) excess(more int64) (excess int64) {
	window := m.limit.Window().Microseconds()
	var level, at int64 // a bucket's level, in units times window
	var n, f, i int64   // a counter
	for _, s := range m.spent {
		switch m.limit.Algorithm() {
		case algorithms.TokenBucket(1, time.Second).Algorithm():
			level = max(0, level-(s.at-at)*m.limit.Requests()) + s.units*window
			excess, at = max(excess, level-(m.limit.Burst()+more)*window), s.at
			continue
		case algorithms.SlidingWindowCounter(1, time.Second).Algorithm():
			if d := s.at/window - i; d == 1 {
				f = n
			} else if d > 1 {
				f = 0
			}
		}
		if s.at/window != i {
			i, n = s.at/window, 0
		}
		n += s.units
		weight := (f*(window-s.at%window) + window - 1) / window
		excess = max(excess, n+weight-m.limit.Requests())
	}
	return excess
}

// Whatever two instances do, and however late blocks are: windows are exact, a
// bucket admits too early no more than the units on lease, the total is never
// exceeded, and no unit vanishes.
func TestLeasesAreExact(t *testing.T) {
	limits := []algorithms.Limit{
		algorithms.TokenBucket(400, time.Second), algorithms.TokenBucket(100, time.Second).WithBurst(900),
		algorithms.SlidingWindowCounter(400, 300*time.Millisecond), algorithms.FixedWindow(400, 300*time.Millisecond),
		algorithms.FixedWindow(1_500, 24*time.Hour), algorithms.SlidingWindowCounter(1_500, 24*time.Hour),
	}
	var spent uint64
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			limit := rapid.SampledFrom(limits).Draw(t, "limit")
			share := rapid.SampledFrom([]int{5, 10, 50}).Draw(t, "share")
			m := newLeaseModel(t, limit, share)
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				m.step(t)
			}
			m.latency.Store(0)
			for _, l := range m.instances {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				got := l.stats()
				if !got.accounted() {
					t.Fatalf("got %+v, want every unit spent, returned or lost", got)
				}
				spent += got.Spent
			}
			m.check(t, share)
		})
	})
	if spent < 300 { // 20 random runs spend 3 500 on average, and seldom less than 1 000
		t.Errorf("got %d units spent from leases, want enough of them to mean something", spent)
	}
}

// step does one random thing on a random instance.
func (m *leaseModel) step(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "instance")
	switch rapid.SampledFrom([]string{"takes", "takes", "pause", "return", "latency"}).Draw(t, "step") {
	case "takes":
		cost, apart := rapid.Int64Range(1, 3).Draw(t, "cost"), rapid.Int64Range(0, 1_000).Draw(t, "apart")
		for range rapid.IntRange(1, 150).Draw(t, "takes") {
			m.take(t, i, cost)
			time.Sleep(time.Duration(apart) * time.Microsecond)
			synctest.Wait()
		}
	case "pause":
		time.Sleep(time.Duration(rapid.Int64Range(0, 200_000).Draw(t, "pause")) * time.Microsecond)
	case "return":
		if n := len(m.taken); n > 0 {
			which := max(0, n-1-rapid.IntRange(0, 60).Draw(t, "which"))
			for ; which < n; which++ {
				m.giveBack(t, i, which, rapid.Int64Range(0, 3).Draw(t, "units"))
			}
		}
	case "latency":
		m.latency.Store(rapid.Int64Range(0, int64(80*time.Millisecond)).Draw(t, "latency"))
	}
}

// timeless is a test without a deadline: a bubble has none.
type timeless struct{ rapid.TB }

// check checks the units that were admitted, when all others have gone back.
func (m *leaseModel) check(t *rapid.T, share int) {
	var onLease int64
	if m.limit.Algorithm().Continuous() {
		onLease = 2 * m.limit.Burst() * int64(share) / 100
	}
	if got := m.excess(onLease); got > 0 {
		t.Fatalf("%v: admitted %d too many", m.limit, got)
	}
	var total int64
	for _, s := range m.spent {
		total += s.units
	}
	if len(m.spent) == 0 {
		return
	}
	since := time.Now().UnixMicro() - m.spent[0].at
	if bucket := m.limit; bucket.Algorithm().Continuous() {
		if most := bucket.Burst() + since*bucket.Requests()/bucket.Window().Microseconds(); total > most {
			t.Fatalf("%v: admitted %d in all, want at most %d", bucket, total, most)
		}
		return
	}
	if m.limit.Window() < time.Hour {
		return
	}
	d, err := algorithms.AllowN(context.Background(), m.fake.Memory, "usr=1", m.limit, 0)
	if want := m.limit.Requests() - total; err != nil || d.Remaining != want {
		t.Fatalf("%v: got %d left, %v, want %d: all except the units that were spent", m.limit, d.Remaining, err, want)
	}
}
