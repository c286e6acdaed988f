package algorithms

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A fleet are instances that each admit their part of a limit alone.
type fleet struct {
	t         *testing.T
	instances []*Memory
	part      Limit
	now       int64 // µs
}

func newFleet(t *testing.T, n int, whole Limit) *fleet {
	t.Helper()
	f := &fleet{t: t, part: portion{1, int64(n)}.of(whole), now: 1_763_729_430_000_000}
	for range n {
		m, err := NewMemory(&MemoryOptions{Now: func() time.Time { return time.UnixMicro(f.now) }})
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close() // no sweeps: they would read the clock
		f.instances = append(f.instances, m)
	}
	return f
}

// drain takes costs at every instance until each denies.
func (f *fleet) drain(cost int64) (units int64) {
	f.t.Helper()
	for _, m := range f.instances {
		for {
			d, err := one(context.Background(), m, Check{Key: "usr=1", Limit: f.part, Cost: cost})
			if err != nil {
				f.t.Fatal(err)
			}
			if !d.Allowed {
				break
			}
			units += cost
		}
	}
	return units
}

// Together they admit about what the whole limit does, in any time, whenever
// their clients ask for as much as they can get.
func TestSharesTogether(t *testing.T) {
	const window = time.Minute
	limits := append(everyAlgorithm(5, window), everyAlgorithm(100, window)...)
	limits = append(limits, TokenBucket(600, window).WithBurst(20), LeakyBucket(100, window).WithBurst(3))
	for _, l := range limits {
		for _, n := range []int{1, 4, 8} {
			if n == 1 && !l.algorithm.Continuous() {
				continue // it is the limit itself
			}
			t.Run(fmt.Sprintf("%v/%d", l, n), func(t *testing.T) {
				f := newFleet(t, n, l)
				start, step := f.now, window.Microseconds()/(l.requests*4)
				var sum, steady int64
				// Of all times that end now, the worst: in units·4·window, less
				// 5·requests for each µs.
				var worst int64
				random := rand.New(rand.NewPCG(1, uint64(n)))
				for i := range 4_000 {
					f.now += step
					if i > 2_000 && i%400 < 1+random.IntN(300) {
						worst -= 5 * l.requests * step
						continue // they pause, so that there is a burst again
					}
					units := f.drain(1)
					if sum += units; i == 2_000 {
						steady = sum
					}
					worst = max(0, worst-5*l.requests*step) + units*4*window.Microseconds()
					if most := (5*l.burst + 4*int64(n)) * window.Microseconds(); worst > most {
						t.Fatalf("after %v: more than 1.25 of the limit, and one unit for each: by %d µs·units", time.Duration(f.now-start)*1_000, worst-most)
					}
				}
				if whole := 2_000 * step * l.requests / window.Microseconds(); steady*100 < whole*75 {
					t.Errorf("admitted %d units where the limit is %d: less than 0.75 of it", steady, whole)
				}
			})
		}
	}
}

// A cost above the burst of a part is admitted seldom, but at the rate of the
// part; one above the whole limit never.
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
				if most := l.requests * minutes; units > most || units < most-cost*int64(n) {
					t.Errorf("%v/%d, cost %d: admitted %d units in an hour, want about %d", l, n, cost, units, most)
				}
			}
		}
	}
}

// A denied large cost is told honestly when to come again.
func TestSharesTellHonestWaits(t *testing.T) {
	for _, l := range everyAlgorithm(10, time.Minute) {
		f := newFleet(t, 8, l)
		m := f.instances[0]
		for _, cost := range []int64{1, 2, 3, 10} {
			d, err := one(context.Background(), m, Check{Key: "usr=1", Limit: f.part, Cost: cost})
			if err != nil || d.Allowed && cost != 1 && cost != 2 {
				t.Fatalf("%v, cost %d: got %+v, %v", l, cost, d, err)
			}
			if d.Allowed {
				continue
			}
			f.now += d.RetryAfter.Microseconds() - 1
			if d := takeOf(t, m, "usr=1", f.part, cost); d.Allowed {
				t.Errorf("%v, cost %d: admitted one µs early", l, cost)
			}
			f.now++
			if d := takeOf(t, m, "usr=1", f.part, cost); !d.Allowed {
				t.Errorf("%v, cost %d: got %+v after the wait, want it admitted", l, cost, d)
			}
		}
	}
}
