// Whether the counts of a leg keep the promises.
//
// Promise 5. An open circuit probes every second, and its client may need a
// second to dial. So it closes at most three seconds after the last trouble.

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	steadyPause  = time.Second // between two probes (algorithms/shared/internal/circuit)
	closesWithin = steadyPause + 2*time.Second
	lookEvery    = 10 * tick
)

// recovery waits until no circuit is open, and returns how long that took. It gives
// up after three times as long as it may take.
func recovery(open func() int) (took time.Duration) {
	begin := time.Now()
	for open() > 0 && time.Since(begin) <= 3*closesWithin {
		time.Sleep(lookEvery)
	}
	return time.Since(begin)
}

// awaitClosed checks promise 5. It waits until the circuits of each instance have
// been closed once, and returns how long that took.
func (l *leg) awaitClosed() (slowest time.Duration) {
	end := time.Now()
	took := make([]time.Duration, len(l.instances))
	var all sync.WaitGroup
	for i, in := range l.instances {
		all.Go(func() { // at once, because a circuit may open again meanwhile
			took[i] = recovery(func() int { return in.limiter.Stats().Fallback.Open })
			if net := l.waits.net(span{from: end, to: end.Add(took[i])}); net > closesWithin {
				l.broken("a circuit was open for %v after the last trouble, %v without the machine's stalls; want %v", took[i], net, closesWithin)
			}
		})
	}
	all.Wait()
	return slices.Max(took)
}

// awaitTold waits until the instances have reported everything to Redis. Call it
// when no caller is left.
func (l *leg) awaitTold() {
	const within = 2 * closesWithin
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(lookEvery) {
		if t := l.tally(); t.owed == 0 && t.open == 0 {
			return
		}
	}
	l.broken("%d keys are not handed back and %d circuits are open %v after the last call", l.tally().owed, l.tally().open, within)
}

// judgeBooks checks promises 1 and 2. It returns the claim that is nearest to its bound.
func (l *leg) judgeBooks() (fullest claim) {
	for _, a := range l.books.accounts {
		for _, c := range a.claims(l.losses.Load()) {
			if c.got > c.most {
				l.broken("admitted too much: %s %q of %v, %v: %v, in %.1f s with %d losses of data", a.policy, a.key, a.limit, a.fail,
					c, float64(a.last-a.first)/1e6, l.losses.Load())
			}
			if c.exceeds(fullest) {
				fullest = c
			}
		}
	}
	return fullest
}

const (
	greedy   = 300 // units of the limit of a greedy client, which asks for twice as many
	attempts = 10  // to ask at a time in which Redis makes all decisions: the machine may be slower than the deadline
)

// judgeGreedy checks promise 7: a client asks all instances at once.
func (l *leg) judgeGreedy() {
	limit := algorithms.FixedWindow(greedy, 365*24*time.Hour)
	for n := range attempts {
		var all sync.WaitGroup
		var admitted, elsewhere atomic.Int64
		for i := range callers {
			in := l.instances[i%len(l.instances)]
			all.Go(func() {
				for range 2 * greedy / callers {
					d, err := algorithms.Allow(context.Background(), in.limiter, fmt.Sprint("usr=greedy", n), limit)
					if err != nil || d.Source != algorithms.Shared {
						elsewhere.Add(1)
					} else if d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if elsewhere.Load() == 0 {
			if admitted.Load() != greedy {
				l.broken("a greedy client was admitted %d times, want %d", admitted.Load(), greedy)
			}
			return
		}
		time.Sleep(steadyPause)
	}
	l.broken("Redis did not make all decisions in any of %d trials after the trouble", attempts)
}

// A tally is the sum of the limiters' statistics.
type tally struct {
	local, passed, trips, handedBack, lost uint64
	owed, open                             int
}

func (l *leg) tally() (t tally) {
	for _, in := range l.instances {
		s := in.limiter.Stats().Fallback
		t.local += s.Local
		t.passed += s.Passed
		t.trips += s.Trips
		t.handedBack += s.HandedBack
		t.lost += s.Lost
		t.owed += s.Owed
		t.open += s.Open
	}
	return t
}
