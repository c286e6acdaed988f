package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// books are the accounts of an act. No other act uses their keys.
type books struct {
	act    string
	begin  time.Time
	fast   []*account   // hot, with limits that refill within the act
	slow   [][]*account // one generation after the other is hot; their limits hardly refill within the act
	total  []*account   // the second limit of calls with two limits
	closed []*account   // fail closed
	open   *account     // fails open
	cold   []*account
}

const (
	coldKeys    = 2_000
	generation  = 3 * time.Second
	generations = 60
)

var (
	fastLimits = []algorithms.Limit{
		algorithms.TokenBucket(40, time.Second).WithBurst(20),
		algorithms.TokenBucket(300, time.Minute).WithBurst(60),
		algorithms.LeakyBucket(40, time.Second).WithBurst(20),
		algorithms.SlidingWindowCounter(80, 2*time.Second),
		algorithms.SlidingWindowLog(60, 2*time.Second),
		algorithms.FixedWindow(80, 2*time.Second),
	}
	slowLimits = []algorithms.Limit{
		algorithms.TokenBucket(60, time.Hour),
		algorithms.LeakyBucket(60, time.Hour),
		algorithms.SlidingWindowCounter(60, time.Hour),
		algorithms.SlidingWindowLog(60, time.Hour),
		algorithms.FixedWindow(60, time.Hour),
	}
)

func newBooks(act string) *books {
	b := &books{act: act, begin: time.Now()}
	enter := func(policy, key string, l algorithms.Limit, fail algorithms.FailureMode) *account {
		return &account{policy: policy, key: "usr=" + act + "-" + key, limit: l, fail: fail}
	}
	for i, l := range fastLimits {
		key := fmt.Sprint("fast", i)
		b.fast = append(b.fast, enter("hot", key, l, algorithms.FailLocal))
		b.closed = append(b.closed, enter("closed", key, l, algorithms.FailClosed))
		b.total = append(b.total, enter("total", key+"|all", algorithms.TokenBucket(2_000, time.Minute).WithBurst(100), algorithms.FailLocal))
	}
	for g := range generations {
		var born []*account
		for i, l := range slowLimits {
			born = append(born, enter("hot", fmt.Sprintf("slow%d-%d", i, g), l, algorithms.FailLocal))
		}
		b.slow = append(b.slow, born)
	}
	for i := range coldKeys {
		b.cold = append(b.cold, enter("cold", fmt.Sprint("cold", i), algorithms.TokenBucket(5, time.Second), algorithms.FailLocal))
	}
	b.open = enter("open", "open", algorithms.TokenBucket(20, time.Second), algorithms.FailOpen)
	return b
}

// newborn returns a slow key of the generation that is hot now.
func (b *books) newborn(random *rand.Rand) *account {
	g := min(int(time.Since(b.begin)/generation), generations-1)
	return b.slow[g][random.IntN(len(b.slow[g]))]
}

// used returns the accounts that were admitted units.
func (b *books) used() (used []*account) {
	all := append([]*account{b.open}, b.cold...)
	for _, some := range append([][]*account{b.fast, b.total, b.closed}, b.slow...) {
		all = append(all, some...)
	}
	for _, a := range all {
		if a.first.Load() > 0 {
			used = append(used, a)
		}
	}
	return used
}
