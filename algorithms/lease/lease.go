// The Limiter: how a call is answered.
//
//	lease.go   how a call is answered
//	block.go   how hot keys are found, and the blocks that their takes spend
//	refill.go  how blocks are fetched and closed, and how their unspent units go back
//
// Exactness. A block is charged in the wrapped limiter before a unit of it is
// spent here, so in total no more is admitted than without leases. A call of
// several takes is all or nothing: units are spent first, the wrapped limiter is
// asked for the rest, and the units are put back if the rest is denied. Example:
// a call takes 1 unit of a leased key and 1 of another. The first is spent from a
// block. The wrapped limiter denies the second, so the first goes back to its
// block, and no unit is charged.

package lease

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
)

// maxTakes is the most takes of a call that leases answer.
const maxTakes = 8

// A Limiter answers takes of hot keys from blocks of units, and passes all other
// calls to the limiter that it wraps. Make one with [New], and Close it.
type Limiter struct {
	wrapped algorithms.Limiter
	options Options
	start   time.Time // instants count from here, by the monotonic clock
	seed    maphash.Seed
	slots   []slot         // a power of two
	work    sync.WaitGroup // the alarm, and fetches
	close   func() error   // does end, once
	ended   atomic.Bool    // tend has run for the last time

	mu     sync.Mutex // guards the fields below, and adding to work
	keys   []*hotKey
	back   []algorithms.Check // returns that are to be sent
	alarm  *time.Timer        // calls tend; nil if it is not set and tend does not run
	closed bool               // nothing is leased any more
	counts struct {           // of Stats: blocks, and the units of closed blocks
		Keys                                  int
		Units                                 int64
		Blocks, Leased, Spent, Returned, Lost uint64
	}
}

// New returns a Limiter that takes its blocks from another limiter, usually one
// that all processes share. Nil options mean the defaults. The error names every
// misconfiguration.
func New(limiter algorithms.Limiter, o *Options) (*Limiter, error) {
	options, err := o.resolved()
	if limiter == nil {
		err = errors.Join(errors.New("lease: the limiter is nil; want the limiter that charges the units, e.g. of shared.New"), err)
	}
	if err != nil {
		return nil, err
	}
	l := &Limiter{wrapped: limiter, options: options, start: time.Now(), seed: maphash.MakeSeed()}
	l.slots = make([]slot, 1<<bits.Len(uint(options.MaxKeys*slotsPerKey-1)))
	l.close = sync.OnceValue(l.end)
	return l, nil
}

// Unwrap returns the wrapped limiter.
func (l *Limiter) Unwrap() algorithms.Limiter { return l.wrapped }

func init() { lent.To[*Limiter]() }

// Allow implements [algorithms.Limiter]. Errors are the wrapped limiter's.
func (l *Limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if ctx.Err() != nil || !onlyTakes(checks) {
		return l.pass(ctx, checks)
	}
	now := l.now()
	var held [maxTakes]holding
	answered := 0
	for i := range checks {
		if held[i] = l.spend(&checks[i], now); held[i].block != nil {
			answered++
		}
	}
	if answered == 0 {
		return l.ask(ctx, checks, now)
	}
	rest := make([]algorithms.Check, 0, len(checks)-answered)
	for i := range checks {
		if held[i].block == nil {
			rest = append(rest, checks[i])
		}
	}
	var err error
	if len(rest) > 0 {
		err = l.ask(ctx, rest, now)
	}
	proceeds := err == nil && algorithms.Allowed(rest)
	for i := range checks {
		switch c, h := &checks[i], &held[i]; {
		case h.block == nil:
			c.Decision, rest = rest[0].Decision, rest[1:]
		case proceeds:
			h.decide(c, now)
		default:
			h.decide(c, now)
			l.unspend(c, h)
		}
	}
	return err
}

// now returns the time since start.
func (l *Limiter) now() time.Duration { return time.Since(l.start) }

// onlyTakes reports whether a call is a few takes, each of a key of its own. Only
// such calls may be answered from blocks.
func onlyTakes(checks []algorithms.Check) bool {
	if len(checks) > maxTakes {
		return false
	}
	for i := range checks {
		c := &checks[i]
		if c.Op != algorithms.Take || c.Limit.Step().Row == nil {
			return false
		}
		for j := range i {
			if keyOf(c) == keyOf(&checks[j]) {
				return false
			}
		}
	}
	return true
}

// pass passes a call to the wrapped limiter. A Reset ends the lease of its key,
// because units that were charged before it must not be spent after it.
func (l *Limiter) pass(ctx context.Context, checks []algorithms.Check) error {
	err := l.wrapped.Allow(ctx, checks)
	for i := range checks {
		if c := &checks[i]; c.Op == algorithms.Reset && c.Limit.Validate() == nil {
			if k, _, _ := l.find(c); k != nil {
				l.endLease(k, c.Limit, true, l.now())
			}
		}
	}
	return err
}

// leasable reports whether a block may answer a take.
func (l *Limiter) leasable(c *algorithms.Check) bool {
	return c.Limit.Step().Row.Leased && c.Cost > 0 && !c.Exact &&
		(len(l.options.Policies) == 0 || slices.Contains(l.options.Policies, c.Policy))
}

// spend spends the cost of a take from the oldest block of its key that has
// enough units.
func (l *Limiter) spend(c *algorithms.Check, now time.Duration) (spent holding) {
	k, _, _ := l.find(c)
	if k == nil || !l.leasable(c) {
		return spent
	}
	if k.limit != c.Limit {
		if c.Limit.Validate() == nil {
			l.endLease(k, c.Limit, false, now)
		}
		return spent
	}
	for _, b := range k.stock.Load() {
		if left, ok := b.spend(c.Cost, now); ok {
			l.refill(k, c.Cost, now)
			return holding{k, b, left}
		}
	}
	return spent
}

// ask lets the wrapped limiter answer. Its answers show which keys are hot, and
// how many units their limits have left.
func (l *Limiter) ask(ctx context.Context, checks []algorithms.Check, now time.Duration) error {
	if err := l.wrapped.Allow(ctx, checks); err != nil || !algorithms.Allowed(checks) {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Decision.Source != algorithms.Shared || !l.leasable(c) {
			continue
		}
		k, s, hash := l.find(c)
		if k == nil && s.vote(hash, now) >= l.options.HotAt/int(time.Second/heatEpoch) {
			k = l.startLease(s, c, now)
		}
		if k != nil && k.limit == c.Limit {
			k.asked.Add(c.Cost)
			k.remaining.Store(c.Decision.Remaining)
			l.refill(k, c.Cost, now)
		}
	}
	return nil
}
