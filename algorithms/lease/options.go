// Options and statistics.

package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Options tune leases. The zero value leases the hot keys of all policies.
type Options struct {
	// Policies are the policies whose keys may be leased; empty means all.
	Policies []string

	// Share bounds the units of a key that this process holds, in per cent of the
	// burst or requests: 1 to 50; 0 means 10.
	Share int

	// Hold is the longest that units are on lease, 10 ms to 1 s; 0 means 100 ms.
	Hold time.Duration

	// HotAt is how many admitted takes per second in this process make a key hot:
	// 10 to 100 000; 0 means 500.
	HotAt int

	// MaxKeys bounds the keys that are leased at once, 1 to 100 000; 0 means
	// 1 000. Each takes about 512 bytes from the start, and a kilobyte while it is
	// hot.
	MaxKeys int
}

// resolved returns a copy of o with all defaults filled in, or everything that is
// wrong with it.
func (o *Options) resolved() (Options, error) {
	all := *cmp.Or(o, &Options{})
	all.Policies = slices.Clone(all.Policies)
	all.Share = cmp.Or(all.Share, 10)
	all.Hold = cmp.Or(all.Hold, 100*time.Millisecond)
	all.HotAt = cmp.Or(all.HotAt, 500)
	all.MaxKeys = cmp.Or(all.MaxKeys, 1_000)
	errs := []error{
		within("Share", all.Share, 1, 50, "per cent from "),
		within("Hold", all.Hold, 10*time.Millisecond, time.Second, ""),
		within("HotAt", all.HotAt, 10, 100_000, "takes per second from "),
		within("MaxKeys", all.MaxKeys, 1, 100_000, ""),
	}
	for _, name := range all.Policies {
		if err := algorithms.ValidatePolicy(name); err != nil {
			errs = append(errs, fmt.Errorf("lease: Policies: %w", err))
		}
	}
	return all, errors.Join(errs...)
}

// hotPace returns the units that a key with takes of one unit asks for in half of
// Hold, when it is just hot.
func (o *Options) hotPace() int64 { return int64(o.HotAt) * int64(o.Hold) / int64(2*time.Second) }

// within returns an error unless an option has a value from low to high.
func within[T cmp.Ordered](option string, value, low, high T, unit string) error {
	if low <= value && value <= high {
		return nil
	}
	return fmt.Errorf("lease: %s is %v; want %s%v to %v, or 0 for the default", option, value, unit, low, high)
}

// Stats returns the statistics of the wrapped limiter, with the part Lease
// filled in. All other parts are zero if neither the wrapped limiter nor a
// limiter inside it has statistics.
func (l *Limiter) Stats() algorithms.Stats {
	s := statsOf(l.wrapped)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Lease = l.counts
	s.Lease.Keys = len(l.keys)
	for _, k := range l.keys {
		for _, b := range k.stock.Load() {
			left := b.onLease()
			s.Lease.Units += left
			s.Lease.Spent += uint64(b.size - left)
		}
	}
	return s
}

// statsOf returns the statistics of a limiter, or of the first limiter inside it
// that has them.
func statsOf(l algorithms.Limiter) algorithms.Stats {
	if counted, ok := l.(interface{ Stats() algorithms.Stats }); ok {
		return counted.Stats()
	}
	if wrapper, ok := l.(interface{ Unwrap() algorithms.Limiter }); ok {
		return statsOf(wrapper.Unwrap())
	}
	return algorithms.Stats{}
}
