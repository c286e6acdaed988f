package algorithms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// LeaseOptions tune leases: a key that is asked for often takes units from
// Redis in blocks, and its takes are answered from those, without Redis. The
// zero value leases every policy, with the defaults below.
//
// A unit is charged in Redis before it is spent, so in total no more is
// admitted than without leases. Units of windows are spent in the window that
// they were taken in. A token bucket may, in any interval, admit as many units
// more as are on lease when it begins: [LeaseStats] has them.
//
// A block is about what the key asks for in half of Hold, and at most an eighth
// of what the limit has left. So the last units of a limit are taken one by
// one, and hardly anybody is denied what another instance holds and does not
// spend. A process that dies leaves what it held charged, until it drains or
// its window ends.
//
// Only takes under a TokenBucket, FixedWindow, SlidingWindowCounter, PerDay or
// PerMonth are leased. Redis decides calls with a trial, or of more than eight checks, whole,
// and checks that are Exact or cost nothing; it counts what is on lease as used.
// The Remaining of a leased take is what is left on the lease, and so a lower
// bound.
type LeaseOptions struct {
	// Policies are the names of those whose keys are leased; empty means all.
	Policies []string

	// Share is how many per cent of a limit's burst (of windows: requests) one
	// instance may hold of one key, from 1 to 50; 0 means 10.
	Share int

	// Hold is the longest that units are on lease, from 10 ms to 1 s; 0 means
	// 100 ms. What is left then goes back. Another limit acts on other instances
	// when their calls bring it; after a Reset they may still spend, or give
	// back, what they hold.
	Hold time.Duration

	// HotAt is how many admitted takes per second, of one key on this instance,
	// make it hot, from 10 to 100 000; 0 means 500. It is so until it asks for
	// fewer units per second than half of that.
	HotAt int

	// MaxKeys bounds the keys that are leased at once, from 1 to 100 000; 0
	// means 1 000. A key takes about a kilobyte while it is hot, and room for
	// 256 bytes is set aside for it from the start.
	MaxKeys int
}

// Bounds and defaults of LeaseOptions.
const (
	minHold, defaultHold, maxHold    = 10 * time.Millisecond, 100 * time.Millisecond, time.Second
	minHotAt, defaultHotAt, maxHotAt = 10, 500, 100_000
	defaultShare, maxShare           = 10, 50
	defaultLeasedKeys, maxLeasedKeys = 1_000, 100_000
)

// withDefaults returns o with the defaults for what is zero.
func (o LeaseOptions) withDefaults() LeaseOptions {
	o.Policies = slices.Clone(o.Policies)
	o.Share = cmp.Or(o.Share, defaultShare)
	o.Hold = cmp.Or(o.Hold, defaultHold)
	o.HotAt = cmp.Or(o.HotAt, defaultHotAt)
	o.MaxKeys = cmp.Or(o.MaxKeys, defaultLeasedKeys)
	return o
}

// validate returns every mistake at once, of options that have their defaults.
func (o *LeaseOptions) validate() error {
	var errs []error
	for _, name := range o.Policies {
		if err := ValidatePolicy(name); err != nil {
			errs = append(errs, fmt.Errorf("algorithms: Lease.Policies: %w", err))
		}
	}
	if o.Share < 1 || o.Share > maxShare {
		errs = append(errs, fmt.Errorf("algorithms: Lease.Share is %d; it must be from 1 to %d per cent", o.Share, maxShare))
	}
	if o.Hold < minHold || o.Hold > maxHold {
		errs = append(errs, fmt.Errorf("algorithms: Lease.Hold is %v; it must be from %v to %v", o.Hold, minHold, maxHold))
	}
	if o.HotAt < minHotAt || o.HotAt > maxHotAt {
		errs = append(errs, fmt.Errorf("algorithms: Lease.HotAt is %d; it must be from %d to %d per second", o.HotAt, minHotAt, maxHotAt))
	}
	if o.MaxKeys < 1 || o.MaxKeys > maxLeasedKeys {
		errs = append(errs, fmt.Errorf("algorithms: Lease.MaxKeys is %d; it must be from 1 to %d", o.MaxKeys, maxLeasedKeys))
	}
	return errors.Join(errs...)
}

// LeaseStats are counts since the start, but for Keys and Units. Leased is the
// sum of Units, Spent, Returned and Lost, and of what is on its way back.
type LeaseStats struct {
	Keys  int   // that are hot now
	Units int64 // that are on lease now, to be spent here

	Blocks   uint64 // that were taken
	Leased   uint64 // units in them
	Spent    uint64 // units that admitted takes
	Returned uint64 // units that went back
	Lost     uint64 // units whose window ended, or that could not go back
}

type leaseCounters struct {
	blocks, leased, returned, lost atomic.Uint64
	spent                          atomic.Int64 // of closed blocks
}

// stats sums up what ended and what is on lease now.
func (l *lease) stats() LeaseStats {
	l.mu.Lock()
	keys := slices.Clone(l.keys)
	l.mu.Unlock()
	s := LeaseStats{
		Keys: len(keys), Blocks: l.counts.blocks.Load(), Leased: l.counts.leased.Load(),
		Returned: l.counts.returned.Load(), Lost: l.counts.lost.Load(),
	}
	spent := l.counts.spent.Load()
	for _, k := range keys {
		for _, b := range k.stock.Load() {
			if b != nil {
				left := b.held()
				s.Units += left
				spent += b.units - left
			}
		}
	}
	s.Spent = uint64(max(0, spent))
	return s
}
