// Package shares divides a limit among the tenants that are present.
//
// A tenant is present from the time at which it asks until it has not asked for a while (Stay). It is present at the
// longest a tenth of that longer, because the table counts in tenths. Its share is
//
//	limit × weight / sum of the weights of the present tenants
//
// Each process counts the tenants that ask it, and the limiter those of all instances. The numbers are not exact, and need
// not be: a share says who passes when the limit is full, and the limit's own bound holds whatever the shares are.
//
// Example: a limit of 100/s, tenants A and B of weight 1, C of weight 2. While all are present, they have shares of 25, 25
// and 50/s. If C stays away for 5 s, A and B have 50/s each.
package shares

import (
	"maps"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// MaxWeight is the largest weight of a tenant.
	MaxWeight = 1_000

	// maxTenants bounds the memory of a table to about 0.6 MB. Further tenants have shares, but do not make those of
	// others smaller.
	maxTenants = 10_000

	// maxSum bounds the denominator of a share, so that no product overflows. Of larger sums, shares are rounded up to
	// 1/maxSum of the limit.
	maxSum = 100_000

	tenths    = 10
	leastStay = 5 * time.Second
	mostStay  = time.Minute
)

// A Table holds the tenants that are present. It is safe for concurrent use.
type Table struct {
	tenth time.Duration

	mu      sync.Mutex // guards the following
	tenants map[uint64]tenant
	weights [tenths + 1]int64 // of the tenants that have last asked in a tenth, at tenth modulo tenths + 1
	sum     int64             // of weights
	now     int64             // the present tenth
	fleet   fleet
}

type tenant struct {
	last, weight int64
	announced    int64 // the window of the fleet
}

// New returns an empty table, in which a tenant stays after it has last asked.
func New(stay time.Duration) *Table {
	return &Table{tenth: stay / tenths, tenants: make(map[uint64]tenant)}
}

// Stay returns how long tenants of a limit stay: the time in which the limit refills its burst, from 5 s to a minute.
func Stay(l algorithms.Limit) time.Duration {
	if l.Requests() == 0 { // Nobody
		return leastStay
	}
	bursts := float64(l.Burst()) / float64(l.Requests()) // decides nothing exactly
	return time.Duration(min(max(bursts*float64(l.Window()), float64(leastStay)), float64(mostStay)))
}

// Ask notes that a tenant of a weight asks at a time, and returns the sum of the weights of all present tenants. If
// announce is true and other instances share the limiter, call Announce. A time before an earlier one counts as that one.
func (t *Table) Ask(id uint64, weight int64, now time.Duration) (sum int64, announce bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	one, present := t.tenants[id]
	announce = !present || one.announced != t.fleet.window || t.fleet.asked != t.now
	next := tenant{t.now, weight, t.fleet.window}
	switch {
	case present && one == next && !announce:
		return t.all(), false
	case present:
		t.add(one.last, -one.weight)
	case len(t.tenants) >= maxTenants:
		return t.all() + weight, false
	}
	t.tenants[id] = next
	t.add(t.now, weight)
	t.fleet.asked = t.now
	return t.all(), announce
}

// all returns the sum of the weights of all present tenants, of all instances.
func (t *Table) all() int64 { return max(t.sum, t.fleet.weight, t.fleet.last) }

// Present returns how many tenants are present in this instance, and the sum of the weights of all instances' tenants.
func (t *Table) Present(now time.Duration) (tenants int, sum int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	return len(t.tenants), t.all()
}

func (t *Table) add(tenth, weight int64) {
	t.weights[tenth%int64(len(t.weights))] += weight
	t.sum += weight
}

// advance forgets the tenants whose time has passed. It requires the lock.
func (t *Table) advance(now time.Duration) {
	t.fleet.roll(now, t.tenth*tenths)
	tenth := int64(now / t.tenth)
	if tenth <= t.now {
		return
	}
	gone := int64(0)
	for i := t.now + 1; i <= min(tenth, t.now+int64(len(t.weights))); i++ {
		gone += t.weights[i%int64(len(t.weights))]
		t.weights[i%int64(len(t.weights))] = 0
	}
	if t.now = tenth; gone == 0 {
		return
	}
	t.sum -= gone
	maps.DeleteFunc(t.tenants, func(_ uint64, one tenant) bool { return tenth-one.last > tenths })
	if len(t.tenants) == 0 {
		t.tenants = make(map[uint64]tenant) // a map does not shrink
	}
}

// Of returns the share of a tenant as a token bucket, exact in its rate. A cost above the share's burst raises it to that
// cost, so that large requests fit into small shares: the next request waits longer for it.
func Of(l algorithms.Limit, weight, sum, cost int64) algorithms.Limit {
	if l.Burst() == 0 {
		return l // Nobody has no part
	}
	if sum > maxSum {
		weight, sum = (weight*maxSum+sum-1)/sum, maxSum
	}
	part := l.Step().Share(weight, sum)
	bucket := algorithms.TokenBucket(part.Requests, time.Duration(part.Window)*time.Microsecond)
	return exact(bucket, max(part.Burst, min(cost, l.Burst())))
}

// exact returns a bucket with a burst. At rates of many millions, a bucket is exact only up to a smaller burst: then it
// has the largest of these.
func exact(bucket algorithms.Limit, burst int64) algorithms.Limit {
	if full := bucket.WithBurst(burst); full.Validate() == nil {
		return full
	}
	least, most := int64(1), burst
	for most-least > 1 {
		if middle := (least + most) / 2; bucket.WithBurst(middle).Validate() == nil {
			least = middle
		} else {
			most = middle
		}
	}
	return bucket.WithBurst(least)
}
