// Attacks on the bound of what instances admit ahead.

package shared

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// A slowLink is the link of one instance to a store: it delays, and loses requests and replies.
type slowLink struct {
	store    *stateStore
	mu       sync.Mutex
	rnd      *rand.Rand
	most     time.Duration // of each way
	requests float64       // lost
	replies  float64       // lost
	lost     int64         // units whose charge was lost
}

func (l *slowLink) allow(ctx context.Context, c *call) error {
	l.mu.Lock()
	to, back := time.Duration(l.rnd.Int64N(int64(l.most)+1)), time.Duration(l.rnd.Int64N(int64(l.most)+1))
	unsent, unanswered := l.rnd.Float64() < l.requests, l.rnd.Float64() < l.replies
	if unsent {
		l.lost += c.items[0].Cost
	}
	l.mu.Unlock()
	time.Sleep(to)
	if !unsent {
		_ = l.store.allow(ctx, c)
		time.Sleep(back)
	}
	if unsent || unanswered {
		time.Sleep(50 * time.Millisecond)
		return trouble.ErrTimeout
	}
	return nil
}

// certain lets a census be certain that so many instances are live.
func (v *views) certain(live int64) {
	v.since.Store(int64(v.now() - 2*aheadAfter))
	v.last.Store(int64(v.now()))
	v.live.Store(live)
	v.offset.CompareAndSwap(0, time.Now().UnixMicro()-v.now().Microseconds())
}

// aheadOf returns the views of so many instances over one store.
func aheadOf(n, percent, keys int, store *stateStore, seed uint64, most time.Duration) (vs []*views) {
	for i := range n {
		v := newViews(keys, percent, func() bool { return false })
		v.next = &slowLink{store: store, rnd: rand.New(rand.NewPCG(seed, uint64(i))), most: most}
		vs = append(vs, v)
	}
	return vs
}

// ask takes units through the views, and says how long that took.
func (v *views) ask(live int64, c algorithms.Check) (d algorithms.Decision, at time.Time, waited time.Duration) {
	v.certain(live)
	began := time.Now()
	one, err := newCall([]algorithms.Check{c})
	if err != nil {
		panic(err)
	}
	if err = v.allow(context.Background(), one); err != nil {
		return d, began, time.Since(began)
	}
	it := &one.items[0]
	if waited = time.Since(began); waited > 0 {
		began = time.UnixMicro(it.Now)
	}
	return it.decision, began, waited
}

// An attack is a client that spends what it can, by many instances.
type attack struct {
	limit             algorithms.Limit
	instances         int
	percent           int
	rtt               time.Duration
	replies, requests float64 // lost
	evict, restarts   bool
	lasts             time.Duration
}

// An admitted is units that were admitted at an instant.
type admitted struct {
	at    time.Time
	units int64
}

// run returns what was admitted, in order, the sum of the allowances, and the units by
// which lost charges and starts add to it.
func (a attack) run(t *testing.T, seed uint64) (taken []admitted, allowances, more int64) {
	synctest.Test(t, func(t *testing.T) {
		rnd, store, live := rand.New(rand.NewPCG(seed, 1)), newStateStore(), int64(a.instances)
		vs := aheadOf(a.instances, a.percent, 4*viewShards, store, seed, a.rtt/2)
		all := slices.Clone(vs)
		for _, v := range vs {
			v.next.(*slowLink).requests, v.next.(*slowLink).replies = a.requests, a.replies
		}
		each := a.limit.Burst() * int64(a.percent) / 100 / live
		allowances = each * live
		var mu sync.Mutex
		take := func(v *views, key string, cost int64, exact bool) (allowed, ahead bool) {
			d, at, waited := v.ask(live, algorithms.Check{Policy: "p", Key: key, Limit: a.limit, Cost: cost, Exact: exact})
			if d.Allowed && key == "x" {
				mu.Lock()
				taken = append(taken, admitted{at, cost})
				mu.Unlock()
			}
			return d.Allowed, d.Allowed && waited == 0
		}
		var wg sync.WaitGroup
		unit := time.Duration(a.limit.Step().A) * time.Microsecond
		for end := time.Now().Add(a.lasts); time.Now().Before(end); {
			order := rnd.Perm(len(vs))
			switch rnd.IntN(6) {
			case 0, 1: // fill up the key by one instance
				for range a.limit.Burst() {
					if allowed, _ := take(vs[order[0]], "x", 1, true); !allowed {
						break
					}
				}
			case 2, 3: // what each admits at once
				for _, i := range order {
					v, ahead := vs[i], true
					for ahead {
						cost := int64(1 + rnd.IntN(3))
						done := make(chan bool, 1)
						wg.Go(func() { _, ahead := take(v, "x", cost, false); done <- ahead })
						synctest.Wait()
						select {
						case ahead = <-done:
						default: // it waits
							ahead = false
						}
					}
				}
			case 4:
				for _, i := range order[:1+rnd.IntN(len(order))] {
					v := vs[i]
					wg.Go(func() { take(v, "x", 1, false) })
				}
			case 5:
				if a.evict {
					for _, i := range order {
						for k := range 16 * viewShards {
							v := vs[i]
							wg.Go(func() { take(v, fmt.Sprint("y", k), 1, false) })
						}
					}
				}
				if a.restarts && rnd.IntN(4) == 0 {
					fresh := aheadOf(1, a.percent, 4*viewShards, store, rnd.Uint64(), a.rtt/2)[0]
					vs[order[0]], all = fresh, append(all, fresh)
					more += each
				}
			}
			time.Sleep([]time.Duration{0, time.Microsecond, a.rtt / 2, a.rtt, unit, 3 * unit, a.limit.Window() / 4, a.limit.Window()}[rnd.IntN(8)])
		}
		wg.Wait()
		for _, v := range all {
			v.close()
			more += v.next.(*slowLink).lost
		}
	})
	slices.SortStableFunc(taken, func(x, y admitted) int { return x.at.Compare(y.at) })
	return taken, allowances, more
}

// bucketOver returns the most units above burst + rate x time in any interval.
func bucketOver(taken []admitted, l algorithms.Limit) float64 {
	rate := float64(l.Requests()) / l.Window().Seconds()
	level, worst := 0.0, math.Inf(-1)
	for i, x := range taken {
		if i > 0 {
			level = math.Max(0, level-x.at.Sub(taken[i-1].at).Seconds()*rate)
		}
		level += float64(x.units)
		worst = math.Max(worst, level-float64(l.Burst()))
	}
	return worst
}

// windowOver returns the most units in a window of the clock and in any span of a window, and the most that
// windows in a row had beyond their limits.
func windowOver(taken []admitted, l algorithms.Limit) (clock, sliding, row int64) {
	counts := make(map[int64]int64)
	first, last := int64(math.MaxInt64), int64(0)
	for i, x := range taken {
		k := x.at.UnixMicro() / l.Window().Microseconds()
		counts[k] += x.units
		first, last = min(first, k), max(last, k)
		sum := int64(0)
		for j := i; j >= 0 && x.at.Sub(taken[j].at) < l.Window(); j-- {
			sum += taken[j].units
		}
		sliding = max(sliding, sum)
	}
	level := int64(0)
	for k := first; k <= last; k++ {
		clock = max(clock, counts[k])
		level = max(0, level+counts[k]-l.Requests())
		row = max(row, level)
	}
	return clock, sliding, row
}

const attackSeeds = 12

// A token bucket admits at most its burst, its rate and the allowances in any interval. Lost charges and starts add
// what they lose.
func TestAheadBoundOfBuckets(t *testing.T) {
	t.Parallel()
	hundred := algorithms.TokenBucket(100, 10*time.Second)
	for name, a := range map[string]attack{
		"near":          {limit: hundred, instances: 4, percent: 20, rtt: 2 * time.Millisecond, lasts: 3 * time.Minute},
		"far":           {limit: hundred, instances: 4, percent: 50, rtt: 200 * time.Millisecond, lasts: 3 * time.Minute},
		"fast":          {limit: algorithms.TokenBucket(1000, 10*time.Second).WithBurst(60), instances: 10, percent: 50, rtt: 20 * time.Millisecond, lasts: time.Minute},
		"evictions":     {limit: hundred, instances: 4, percent: 20, rtt: 2 * time.Millisecond, evict: true, lasts: 20 * time.Second},
		"starts":        {limit: hundred, instances: 4, percent: 20, rtt: 2 * time.Millisecond, restarts: true, lasts: 3 * time.Minute},
		"lost replies":  {limit: hundred, instances: 4, percent: 20, rtt: 2 * time.Millisecond, replies: 0.3, lasts: 3 * time.Minute},
		"lost requests": {limit: hundred, instances: 4, percent: 20, rtt: 2 * time.Millisecond, requests: 0.3, lasts: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			worst := math.Inf(-1)
			for seed := range uint64(attackSeeds) {
				if a.evict && seed == 2 {
					break
				}
				taken, allowances, more := a.run(t, seed+1)
				over := bucketOver(taken, a.limit)
				if worst = math.Max(worst, over); over > float64(allowances+more)+1e-6 {
					t.Errorf("seed %d: got %.1f over burst + rate x time, want at most %d", seed+1, over, allowances+more)
				}
			}
			if worst <= 0 && a.replies+a.requests == 0 { // with trouble, instances ask
				t.Errorf("got %.1f over at most: the attack does not attack", worst)
			}
		})
	}
}

// A window admits at most its limit and the allowances. Fixed windows carry the overdraft as debt. A counter
// forgets it, so it holds for each window, and for any span of a window as for a larger limit.
func TestAheadBoundOfWindows(t *testing.T) {
	t.Parallel()
	for _, limit := range []algorithms.Limit{algorithms.FixedWindow(100, 10*time.Second), algorithms.SlidingWindowCounter(100, 10*time.Second)} {
		for _, rtt := range []time.Duration{2 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprint(limit, rtt), func(t *testing.T) {
				most := int64(0)
				for seed := range uint64(attackSeeds) {
					taken, d, _ := attack{limit: limit, instances: 4, percent: 20, rtt: rtt, lasts: 5 * time.Minute}.run(t, seed+1)
					clock, sliding, row := windowOver(taken, limit)
					most = max(most, clock)
					if b := limit.Burst(); clock > b+d || sliding > 2*(b+d)-1 {
						t.Errorf("seed %d: got %d in a window of the clock, %d in any, want at most %d and %d", seed+1, clock, sliding, b+d, 2*(b+d)-1)
					}
					if limit.Step().Row == step.FixedWindow && row > d {
						t.Errorf("seed %d: windows in a row had %d beyond their limits, want at most %d", seed+1, row, d)
					}
				}
				if most <= limit.Burst() && rtt < 100*time.Millisecond {
					t.Errorf("got %d in a window at most: the attack does not attack", most)
				}
			})
		}
	}
}

// A client that pushes its view out with other keys gets the allowances once.
func TestAheadForgetsNoViewThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, n := algorithms.TokenBucket(100, time.Hour), 0
		vs := aheadOf(4, 20, 64, newStateStore(), 1, time.Millisecond)
		ask := func(v *views, key string, exact bool) bool {
			d, _, _ := v.ask(4, algorithms.Check{Policy: "p", Key: key, Limit: limit, Cost: 1, Exact: exact})
			return d.Allowed
		}
		for ask(vs[0], "x", true) {
			n++
		}
		for round := range 60 {
			for _, v := range vs {
				for range 5 {
					if ask(v, "x", false) {
						n++
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
			for _, v := range vs {
				for k := range 200 {
					ask(v, fmt.Sprintf("y%d.%d", round, k), false)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		for _, v := range vs {
			v.close()
		}
		if n > 120 || n <= 100 {
			t.Errorf("got %d of 100 admitted, want more, and at most 120", n)
		}
	})
}

// A cost of 0 is never admitted ahead: nothing would refresh its view, and a ban that another instance has set would
// never be seen.
func TestAheadAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vs := aheadOf(2, 25, 1_000, newStateStore(), 1, time.Millisecond)
		ban := algorithms.Check{Policy: "b", Key: "x", Limit: algorithms.TokenBucket(1, time.Second).WithBurst(60), Cost: 1}
		vs[1].ask(2, ban)
		time.Sleep(time.Second)
		ban.Cost, ban.Op = 120, algorithms.Force
		vs[0].ask(2, ban)
		ban.Cost, ban.Op = 0, algorithms.Take
		if d, _, _ := vs[1].ask(2, ban); d.Allowed {
			t.Error("a banned client is admitted")
		}
		for _, v := range vs {
			v.close()
		}
	})
}
