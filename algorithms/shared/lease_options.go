// Options and stats of leases.

package shared

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// LeaseOptions tune leases: a hot key takes units from Redis in blocks, which
// answer without Redis. The zero value leases the hot keys of all policies.
//
// Leases admit no more in total. In any interval, a token bucket may admit as
// many units more as were on lease when the interval began. If a process dies,
// its units stay charged until they drain.
//
// Takes under TokenBucket, FixedWindow, SlidingWindowCounter, PerDay and
// PerMonth are leased, unless they are Exact, or share a call with a trial, a
// check on the same key, or more than seven checks.
//
// Lease in all processes of a policy, or in none. In a closed loop, a process with
// leases took 8 times as many of 10 000 units as others, and 64 times as many of
// 1 000 000. Of the last tenth it took 1.5 and 8 times as many.
type LeaseOptions struct {
	// Policies are the policies whose keys may be leased; empty means all.
	Policies []string

	// Share bounds the units of a key that an instance holds, in per cent of the
	// burst or requests: 1 to 50; 0 means 10.
	Share int

	// Hold is the longest that units are on lease, 10 ms to 1 s; 0 means 100 ms.
	// Other instances see a Reset within Hold.
	Hold time.Duration

	// HotAt is how many admitted takes per second here make a key hot: 10 to 100
	// 000; 0 means 500.
	HotAt int

	// MaxKeys bounds the keys that are leased at once, 1 to 100 000; 0 means 1
	// 000. Each takes 256 bytes from the start, and a kilobyte while it is hot.
	MaxKeys int
}

// withDefaults returns a copy of o with all defaults filled in.
func (o LeaseOptions) withDefaults() LeaseOptions {
	o.Policies = slices.Clone(o.Policies)
	o.Share = cmp.Or(o.Share, 10)
	o.Hold = cmp.Or(o.Hold, 100*time.Millisecond)
	o.HotAt = cmp.Or(o.HotAt, 500)
	o.MaxKeys = cmp.Or(o.MaxKeys, 1_000)
	return o
}

// validate returns everything that is wrong with options that have their
// defaults.
func (o *LeaseOptions) validate() error {
	var errs []error
	for _, name := range o.Policies {
		if err := algorithms.ValidatePolicy(name); err != nil {
			errs = append(errs, fmt.Errorf("shared: Lease.Policies: %w", err))
		}
	}
	return errors.Join(append(errs,
		within("Share", o.Share, 1, 50, "per cent from "),
		within("Hold", o.Hold, 10*time.Millisecond, time.Second, ""),
		within("HotAt", o.HotAt, 10, 100_000, "takes per second from "),
		within("MaxKeys", o.MaxKeys, 1, 100_000, ""),
	)...)
}

// within returns an error unless an option has a value from low to high.
func within[T cmp.Ordered](option string, value, low, high T, unit string) error {
	if low <= value && value <= high {
		return nil
	}
	return fmt.Errorf("shared: Lease.%s is %v; want %s%v to %v", option, value, unit, low, high)
}

// leaseCounts count ended blocks and spent units.
type leaseCounts struct {
	blocks, leased, returned, lost atomic.Uint64
	spent                          atomic.Int64 // units of closed blocks
}

// addStats adds the ended blocks and the blocks on lease.
func (l *lease) addStats(s *algorithms.Stats) {
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	n := &s.Lease
	n.Keys = len(keys)
	n.Blocks, n.Leased = l.counts.blocks.Load(), l.counts.leased.Load()
	n.Returned, n.Lost = l.counts.returned.Load(), l.counts.lost.Load()
	spent := l.counts.spent.Load()
	for _, k := range keys {
		for _, b := range k.stock.Load() {
			left := b.onLease()
			n.Units += left
			spent += b.size - left
		}
	}
	n.Spent = uint64(max(0, spent))
}
