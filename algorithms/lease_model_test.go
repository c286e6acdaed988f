package algorithms_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
)

// A spending is units that were admitted, but for those that were returned.
type spending struct {
	at    int64 // µs
	units int64
}

// A leaseModel is two instances with leases over one store, and what they have admitted.
type leaseModel struct {
	store     *below
	instances [2]*algorithms.Stack
	limit     algorithms.Limit
	latency   atomic.Int64 // of blocks, each way

	spent []spending
	taken []algorithms.Check // the take of each spending
}

func newLeaseModel(t *rapid.T, limit algorithms.Limit, share int) *leaseModel {
	m := &leaseModel{limit: limit, store: &below{Memory: algorithms.Must(algorithms.NewMemory(nil))}}
	slow := func(checks []algorithms.Check) {
		if checks[0].Exact {
			time.Sleep(time.Duration(m.latency.Load()))
		}
	}
	m.store.before = func(checks []algorithms.Check) error { slow(checks); return nil }
	m.store.after = slow
	for i := range m.instances {
		m.instances[i] = algorithms.NewStackForTest(m.store, &algorithms.Options{
			Lease: &algorithms.LeaseOptions{Share: share}, DenyCacheKeys: algorithms.DenyCacheOff,
		})
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

// take takes on an instance.
func (m *leaseModel) take(t *rapid.T, i int, cost int64) {
	c := m.allow(t, i, algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: m.limit, Cost: cost})
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

// excess returns by how many units the spendings ever exceed the limit with a larger burst, of the fullest interval.
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

// Whatever two instances do, and however late blocks are: windows are exact, a bucket admits no more than what was on
// lease too early and in total nothing too much, no unit vanishes, and what is told is never too high.
func TestLeasesAreExact(t *testing.T) {
	limits := []algorithms.Limit{
		algorithms.TokenBucket(400, time.Second), algorithms.TokenBucket(100, time.Second).WithBurst(900),
		algorithms.SlidingWindowCounter(400, 300*time.Millisecond), algorithms.FixedWindow(400, 300*time.Millisecond),
		algorithms.FixedWindow(1_500, 24*time.Hour), algorithms.SlidingWindowCounter(1_500, 24*time.Hour),
	}
	var leased uint64
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			limit := rapid.SampledFrom(limits).Draw(t, "limit")
			share := rapid.SampledFrom([]int{5, 10, 50}).Draw(t, "share")
			m := newLeaseModel(t, limit, share)
			defer m.store.Close()
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
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
			m.latency.Store(0)
			for _, s := range m.instances {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				got := s.Stats().Lease
				if got.Units != 0 || got.Leased != got.Spent+got.Returned+got.Lost {
					t.Fatalf("got %+v, want every unit spent, returned or lost", got)
				}
				leased += got.Spent
			}
			m.check(t, share)
		})
	})
	if leased < 1_000 {
		t.Errorf("got %d units spent from leases, want enough of them to mean something", leased)
	}
}

// timeless is a test that has no deadline: in a bubble there is none.
type timeless struct{ rapid.TB }

// check checks what was admitted, when everything has gone back.
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
	d, err := algorithms.Peek(context.Background(), m.store.Memory, "usr=1", m.limit)
	if err != nil {
		t.Fatal(err)
	}
	if want := m.limit.Requests() - total; d.Remaining != want {
		t.Fatalf("%v: got %d left, want %d: all but what was spent", m.limit, d.Remaining, want)
	}
}

// Everything at once: what was leased is accounted for, and nothing is admitted twice.
func TestLeasesUnderConcurrency(t *testing.T) {
	limit := algorithms.FixedWindow(120_000, 365*24*time.Hour)
	store := newBelow(t)
	store.forgetful = true
	o := &algorithms.Options{Lease: &algorithms.LeaseOptions{Hold: 10 * time.Millisecond, Share: 50}}
	o.Redis.Observe = func(e algorithms.Event) { t.Errorf("%v: %v", e.Kind, e.Err) }
	s := algorithms.NewStackForTest(store, o)
	var kept atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			shared := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit}
			for range 10_000 {
				first, second := shared, shared
				first.Cost, second.Cost, second.Key = 1+rng.Int64N(3), 1, "usr=2"
				call := []algorithms.Check{first, second}
				switch rng.IntN(200) {
				case 0: // the second key's other limit changes it
					call[1].Limit = algorithms.FixedWindow(200_000, 365*24*time.Hour)
				case 1:
					call[1].Op, call[1].Cost = algorithms.Reset, 0
					call = call[1:]
				case 2:
					call[1].Limit = algorithms.Nobody()
				}
				if err := s.Allow(context.Background(), call); err != nil {
					t.Error(err)
					return
				}
				if !algorithms.Allowed(call) || call[0].Op == algorithms.Reset {
					continue
				}
				if rng.IntN(10) == 0 {
					call[0].Op = algorithms.Return
					if err := s.Allow(context.Background(), call[:1]); err != nil {
						t.Error(err)
						return
					}
					continue
				}
				kept.Add(call[0].Cost)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := s.Stats().Lease
	if got.Spent == 0 || got.Units != 0 || got.Keys != 0 || got.Leased != got.Spent+got.Returned+got.Lost {
		t.Errorf("got %+v, want every unit spent, returned or lost", got)
	}
	if used := limit.Requests() - store.left(t, "usr=1", limit); used != kept.Load() || used > limit.Requests() {
		t.Errorf("got %d used in the store, want %d: what was admitted and not returned; %+v", used, kept.Load(), got)
	}
}
