// Shares of limits together: instances that each admit their part admit about
// as much as the whole limit.

package step_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// memoryAt returns a Memory whose clock is at an instant in µs.
func memoryAt(now *int64) *algorithms.Memory {
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(*now) }})
}

// take takes units of a limit from one key.
func take(t *testing.T, l algorithms.Limiter, limit algorithms.Limit, units int64) algorithms.Decision {
	t.Helper()
	d, err := algorithms.AllowN(t.Context(), l, "usr=1", limit, units)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// everyAlgorithm has one limit of each algorithm: so many requests per window.
func everyAlgorithm(requests int64, window time.Duration) []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(requests, window), algorithms.LeakyBucket(requests, window),
		algorithms.SlidingWindowCounter(requests, window), algorithms.SlidingWindowLog(requests, window),
		algorithms.FixedWindow(requests, window),
	}
}

// A fleet is instances that each admit their part of a limit alone.
type fleet struct {
	t         *testing.T
	instances []*algorithms.Memory
	part      algorithms.Limit
	now       int64 // µs
}

func newFleet(t *testing.T, n int, whole algorithms.Limit) *fleet {
	t.Helper()
	f := &fleet{t: t, part: portion{1, int64(n)}.of(whole), now: 1_763_729_430_000_000}
	for range n {
		f.instances = append(f.instances, memoryAt(&f.now))
	}
	return f
}

// drain takes costs at every instance until each denies.
func (f *fleet) drain(cost int64) (units int64) {
	f.t.Helper()
	for _, m := range f.instances {
		for {
			if !take(f.t, m, f.part, cost).Allowed {
				break
			}
			units += cost
		}
	}
	return units
}

// Together, shares admit about what the whole limit does, in any time, while
// clients ask for as much as they can get.
func TestSharesTogether(t *testing.T) {
	const window = time.Minute
	limits := append(everyAlgorithm(5, window), everyAlgorithm(100, window)...)
	limits = append(limits, algorithms.TokenBucket(600, window).WithBurst(20), algorithms.LeakyBucket(100, window).WithBurst(3))
	for _, l := range limits {
		for _, n := range []int{1, 4, 8} {
			if n == 1 && !l.Algorithm().Continuous() {
				continue // it is the limit itself
			}
			t.Run(fmt.Sprintf("%v/%d", l, n), func(t *testing.T) {
				f := newFleet(t, n, l)
				start, step := f.now, window.Microseconds()/(l.Requests()*4)
				var sum, steady int64
				// Of all times that end now, the worst: in units·4·window, less
				// 5·requests for each µs.
				var worst int64
				random := rand.New(rand.NewPCG(1, uint64(n)))
				for i := range 4_000 {
					f.now += step
					if i > 2_000 && i%400 < 1+random.IntN(300) {
						worst -= 5 * l.Requests() * step
						continue // they pause, so that there is a burst again
					}
					units := f.drain(1)
					if sum += units; i == 2_000 {
						steady = sum
					}
					worst = max(0, worst-5*l.Requests()*step) + units*4*window.Microseconds()
					if most := (5*l.Burst() + 4*int64(n)) * window.Microseconds(); worst > most {
						t.Fatalf("after %v: more than 1.25 of the limit, and one unit for each: by %d µs·units", time.Duration(f.now-start)*1_000, worst-most)
					}
				}
				if whole := 2_000 * step * l.Requests() / window.Microseconds(); steady*100 < whole*75 {
					t.Errorf("admitted %d units where the limit is %d: less than 0.75 of it", steady, whole)
				}
			})
		}
	}
}

// A cost above the burst of a part is admitted seldom, at the rate of the part. A
// cost above the whole limit is never admitted.
func TestSharesOfLargeCosts(t *testing.T) {
	const window = time.Minute
	for _, l := range everyAlgorithm(10, window) {
		for _, n := range []int{4, 8} {
			for _, cost := range []int64{4, 10} {
				f := newFleet(t, n, l)
				if got := f.drain(11); got != 0 {
					t.Fatalf("%v/%d: admitted a cost of 11", l, n)
				}
				if got := f.drain(cost); got != cost*int64(n) {
					t.Errorf("%v/%d: admitted %d units from full parts, want a cost of %d for each", l, n, got, cost)
				}
				var units int64
				const minutes = 60
				for range minutes * 60 {
					f.now += 1_000_000
					units += f.drain(cost)
				}
				// Each part pays a cost off before the next.
				if most := l.Requests() * minutes; units > most || units < most-cost*int64(n) {
					t.Errorf("%v/%d, cost %d: admitted %d units in an hour, want about %d", l, n, cost, units, most)
				}
			}
		}
	}
}

// The wait of a denied large cost is exact.
func TestSharesWaitsAreExact(t *testing.T) {
	for _, l := range everyAlgorithm(10, time.Minute) {
		f := newFleet(t, 8, l)
		m := f.instances[0]
		for _, cost := range []int64{1, 2, 3, 10} {
			d := take(t, m, f.part, cost)
			if d.Allowed && cost != 1 && cost != 2 {
				t.Fatalf("%v, cost %d: got %+v", l, cost, d)
			}
			if d.Allowed {
				continue
			}
			f.now += d.RetryAfter.Microseconds() - 1
			if d := take(t, m, f.part, cost); d.Allowed {
				t.Errorf("%v, cost %d: admitted one µs early", l, cost)
			}
			f.now++
			if d := take(t, m, f.part, cost); !d.Allowed {
				t.Errorf("%v, cost %d: got %+v after the wait, want it admitted", l, cost, d)
			}
		}
	}
}
