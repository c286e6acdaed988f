// The books: accounts of keys, and the bounds of promises 1 and 2, which
// algorithms/shared/OUTAGES.md derives.
//
// Windows of FixedWindow and SlidingWindowCounter begin at multiples of W. The window
// of a SlidingWindowLog may begin at any moment. An instance without Redis has 1/N of the
// limit, as a bucket of the same rate, whose burst is less than B/N + 1.

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Books are the accounts of a leg.
type books struct {
	begin time.Time

	mu       sync.Mutex // guards the fields below
	accounts map[string]*account
	onces    []*once
}

// of returns the account of a key, which it opens if there is none.
func (b *books) of(policy, key string, l algorithms.Limit, fail algorithms.FailureMode) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[policy+key]
	if a == nil {
		a = &account{policy: policy, key: "usr=" + key, limit: l, fail: fail}
		b.accounts[policy+key] = a
	}
	return a
}

// An account holds the units that one key was admitted in one leg.
type account struct {
	policy, key string
	limit       algorithms.Limit
	fail        algorithms.FailureMode

	mu            sync.Mutex // guards the fields below
	shared, local int64      // without units that were returned, even if the return was lost
	first, last   int64      // µs: when the first admitted take was sent, and the last one was answered
}

func (a *account) check(cost int64) algorithms.Check {
	return algorithms.Check{Policy: a.policy, Key: a.key, Limit: a.limit, Fail: a.fail, Cost: cost}
}

// admit notes units that a limiter admitted to a take sent at an instant. They are negative if they were returned.
func (a *account) admit(source algorithms.Source, units int64, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch source {
	case algorithms.Shared:
		a.shared += units
	case algorithms.Local:
		a.local += units
	}
	if a.last == 0 {
		a.first = asked.UnixMicro()
	}
	a.first, a.last = min(a.first, asked.UnixMicro()), max(a.last, time.Now().UnixMicro())
}

// admits returns the most that the limit admits from the first take to the last.
func (a *account) admits() int64 {
	r, w := a.limit.Requests(), a.limit.Window().Microseconds()
	switch a.limit.Algorithm() {
	case logs:
		return r * ((a.last-a.first)/w + 1)
	case counters, windows:
		return r * (a.last/w - a.first/w + 1)
	default:
		return a.limit.Burst() + (a.last-a.first)*r/w + 1
	}
}

var (
	counters = algorithms.SlidingWindowCounter(1, time.Second).Algorithm()
	logs     = algorithms.SlidingWindowLog(1, time.Second).Algorithm()
	windows  = algorithms.FixedWindow(1, time.Second).Algorithm()
)

// A claim compares the units that were admitted with a bound.
type claim struct {
	what      string
	got, most int64
}

func (c claim) String() string { return fmt.Sprintf("%s %d of %d", c.what, c.got, c.most) }

// exceeds reports whether c is nearer to its bound than other, or further above.
func (c claim) exceeds(other claim) bool {
	return other.most == 0 || c.got*other.most > other.got*c.most
}

// claims returns promises 1 and 2 for a key.
func (a *account) claims(losses int64) []claim {
	perWindow := (a.last - a.first) * a.limit.Requests() / a.limit.Window().Microseconds()
	return []claim{
		{"by Redis", a.shared, a.admits() + losses*a.limit.Burst()},
		{"locally", a.local, a.limit.Burst() + perWindow + instances},
	}
}
