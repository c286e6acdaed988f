// Promise 7: clients that keep to their limit are admitted, and greedy ones get exactly the limit.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// attempts is how often a trial begins again when Redis did not make all its
	// decisions: the machine may be slower than the deadline at any time.
	attempts = 10
	// trialPause is the pause before the next attempt. A dead connection that the
	// last trouble left behind may open a circuit once more, and then it closes.
	trialPause = closesWithin
	maxWait    = 3 * time.Second
	greedy     = 300
	compliant  = 25
)

// judgeFairness checks promise 7. Call it after the trouble.
func (l *leg) judgeFairness(b *books, random *rand.Rand) {
	var all sync.WaitGroup
	nonce := random.Uint64()
	all.Go(func() { l.trial("a greedy client", func(n int) bool { return l.greedy(fmt.Sprint("usr=", nonce, n)) }) })
	all.Go(func() {
		l.trial("a compliant client", func(n int) bool { return l.compliant(fmt.Sprint("usr=", nonce, n)) })
	})
	for _, a := range append(b.fast, b.newborn(random)) {
		all.Go(func() { l.trial("a client that waits", func(int) bool { return l.patient(a) }) })
	}
	all.Wait()
}

// trial repeats a trial until Redis has made all its decisions.
func (l *leg) trial(who string, f func(n int) (shared bool)) {
	for n := range attempts {
		if f(n) {
			return
		}
		time.Sleep(trialPause)
	}
	l.broken("%s: Redis did not make all decisions in any of %d trials after the trouble", who, attempts)
}

// greedy asks all instances at once, for more than the limit in all.
func (l *leg) greedy(key string) bool {
	var all sync.WaitGroup
	var admitted, elsewhere atomic.Int64
	for i := range callers {
		in := l.instances[i%len(l.instances)]
		all.Go(func() {
			for range 2 * greedy / callers {
				d, err := takeOne(in, key, algorithms.FixedWindow(greedy, 365*24*time.Hour))
				if err != nil || d.Source != algorithms.Shared {
					elsewhere.Add(1)
				} else if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if elsewhere.Load() > 0 {
		return false
	}
	if n := admitted.Load(); n != greedy {
		l.broken("a greedy client was admitted %d times, want %d", n, greedy)
	}
	return true
}

// compliant asks a little slower than the limit allows, one instance after the
// other.
func (l *leg) compliant(key string) bool {
	limit := algorithms.TokenBucket(20, time.Second).WithBurst(3)
	for i := range compliant {
		d, err := takeOne(l.instances[i%len(l.instances)], key, limit)
		if err != nil || d.Source != algorithms.Shared {
			return false
		}
		if !d.Allowed {
			l.broken("a compliant client was denied at its take number %d: %+v", i+1, d)
		}
		time.Sleep(limit.Window() / time.Duration(limit.Requests()))
	}
	return true
}

// patient asks for a unit of a key that was used during the trouble. If it is
// denied, it asks once more after RetryAfter.
func (l *leg) patient(a *account) bool {
	d, err := takeOne(l.instances[0], a.key, a.limit)
	if err != nil || d.Source != algorithms.Shared {
		return false
	}
	if d.Allowed || d.RetryAfter > maxWait {
		return true
	}
	time.Sleep(d.RetryAfter)
	again, err := takeOne(l.instances[len(l.instances)-1], a.key, a.limit)
	if err != nil || again.Source != algorithms.Shared {
		return false
	}
	if !again.Allowed {
		l.broken("%q of %v: denied although it waited for its RetryAfter of %v: %+v", a.key, a.limit, d.RetryAfter, again)
	}
	return true
}

func takeOne(in *instance, key string, l algorithms.Limit) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: "hot", Key: key, Limit: l, Cost: 1, Exact: true}}
	err := in.limiter.Allow(context.Background(), checks)
	return checks[0].Decision, err
}
