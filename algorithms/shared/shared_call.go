// A call on its way through the layers. It is validated once, here; each check
// becomes one item with one key, and every layer below relies on it.
//
// A layer answers a call by writing each item's decision. A call whose batch is
// overdue goes on: the batch reads its items and writes their answers, while the
// layers above write decisions. The two touch different fields, and the items are
// never used for another call. fallback_overdue.go says what becomes of such a call.

package shared

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
)

// A layer decides calls, or passes them on to the layer below.
//
// An error means that no decision could be made. It wraps ErrInvalid only for a
// caller's clock that is out of bounds.
type layer interface {
	allow(ctx context.Context, c *call) error
}

// An item is one check of a call, and its answer.
type item struct {
	batch.Item
	hash     uint64 // of the key: every layer uses the same
	exact    bool
	fail     algorithms.FailureMode
	unknown  bool                // Redis may have charged it, and has not answered
	decision algorithms.Decision // the layers' answer

	// Only the Redis layer uses these.
	slot uint16
	part int // the group that it is in, noPart if in none
}

// A call is the items of one Allow. Items never move, because they point to each
// other.
type call struct {
	items []item
	steps step.Call // the items as steps see them
	ours  bool      // of the limiter itself: circuits do not count it
	asks  bool      // views must not answer it while Redis can: it has trials, which are counted, settlements, or exact takes
	waits bool      // a take of it must not be charged later
	known bool      // a remembered denial has answered it, and not Redis
	ahead bool      // its takes were admitted already: without Redis, the memory forces their units

	failed  bool         // a batch may still read the items
	part    int          // the group that has ended overdue
	settled <-chan error // of that group: see [batch.Group.Settled]; nil if none is overdue

	// Only the Redis layer uses these.
	redis  *redisLayer
	groups []batch.Group // one of each slot
}

var calls = sync.Pool{New: func() any { return new(call) }}

// maxPooled bounds the items of calls that the pool keeps.
const maxPooled = 32

// maxKept is the longest key, in bytes, that a layer keeps. Clients may choose
// keys, so a bound on the number of keys alone would not bound memory.
const maxKept = 1024 + 128

// seed is the seed of all hashes of keys.
var seed = maphash.MakeSeed()

// newCall returns the call of checks, or everything that is wrong with them.
func newCall(checks []algorithms.Check) (*call, error) {
	if err := step.CheckSize(len(checks)); err != nil {
		return nil, err
	}
	c := getCall(len(checks))
	var errs []error
	for i := range checks {
		it := &c.items[i]
		err := checks[i].Item(&it.Item.Item)
		if err == nil {
			it.exact, it.fail = checks[i].Exact, checks[i].Fail
			err = c.add(it)
		}
		if err == nil && it.Op.Depends() { // the second take of a pair speaks for both
			c.items[i-1].fail = it.fail
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if errs != nil {
		c.free()
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// getCall returns a call of n items. The items may be stale.
func getCall(n int) *call {
	c := calls.Get().(*call)
	if cap(c.items) < n {
		c.items = make([]item, n)
	}
	c.items = c.items[:n]
	return c
}

// lone returns the call of an item that is valid alone, such as a settlement.
func lone(it step.Item) *call {
	c := getCall(1)
	c.items[0] = item{Item: batch.Item{Item: it}}
	_ = c.add(&c.items[0])
	return c
}

// add finishes an item whose step.Item is filled in.
func (c *call) add(it *item) error {
	it.hash, it.unknown = step.Hash(seed, it.Key.Policy, it.Key.Text, it.Key.Scope.ID), false
	if it.Dropped = it.Receipt.Units > 0 && it.Op.Reads() && it.Receipt.Source != uint8(algorithms.Shared); it.Dropped {
		it.admit() // the memory answers it if it has issued the receipt
	}
	err := c.steps.Add(&it.Item.Item)
	c.asks = c.asks || it.Op != step.Take || it.exact
	c.waits = c.waits || !it.Limit.Row.ChargedLater || it.Cost == 0 || it.fail == algorithms.FailClosed || it.Home != &it.Item.Item
	return err
}

// free gives c back to the pool, unless something may still use it.
func (c *call) free() {
	if c.failed || len(c.items) > maxPooled {
		return
	}
	for i := range c.items {
		c.items[i].Forget()
		c.items[i].Stored = ""
	}
	for i := range c.groups {
		c.groups[i].Reset()
	}
	clear(c.steps.Items)
	c.items, c.groups, c.steps.Items = c.items[:0], c.groups[:0], c.steps.Items[:0]
	c.ours, c.asks, c.waits, c.known, c.ahead = false, false, false, false, false
	calls.Put(c)
}

// proceeds reports whether every take of c is allowed.
func (c *call) proceeds() bool {
	for i := range c.items {
		if it := &c.items[i]; it.Op.Decides() && !it.decision.Allowed {
			return false
		}
	}
	return true
}

// decide writes the decision of an item that a store answered at now.
func (it *item) decide(now int64, source algorithms.Source) {
	f := it.Figures(now)
	var left step.Receipt
	it.Left(&left, uint8(source))
	if f.Undecided {
		source = algorithms.Undecided
	}
	it.decision = algorithms.Decision{
		Allowed: f.Allowed, Source: source, Remaining: f.Remaining, RetryAfter: f.RetryAfter,
		ResetAfter: f.ResetAfter, UnitAfter: f.UnitAfter, Delay: f.Delay, Receipt: algorithms.ReceiptOf(left),
	}
}

// returnsShared reports whether an item returns units that the primary has charged.
func (it *item) returnsShared() bool {
	return it.Op == step.Return && it.Receipt.Units > 0 && !it.Dropped
}

// undoes reports whether a Return may take its units off a charge that Redis has not made at now: units of a key are
// alike. A Return of an earlier window takes none of the units of this one.
func (it *item) undoes(now int64) bool {
	l := &it.Limit
	return it.returnsShared() && it.Cost > 0 && it.Cost <= it.Receipt.Units &&
		l.Row.ChargedLater && (l.Row.Refill == step.Continuously || l.Turned(it.Receipt.T, now) == 0)
}

// madeHere answers a Return that this process has made without Redis.
func (it *item) madeHere() {
	it.handOver()
	it.Dropped = true
}

// handOver answers a Return that the limiter has taken over: its receipt is used.
func (it *item) handOver() {
	var rest step.Receipt
	it.Left(&rest, uint8(algorithms.Shared))
	it.decision = algorithms.Decision{Allowed: true, Receipt: algorithms.ReceiptOf(rest)}
}

// admit lets an item pass undecided. A settlement keeps its receipt.
func (it *item) admit() {
	it.unknown = false
	it.decision = algorithms.Decision{Allowed: true, Receipt: algorithms.ReceiptOf(it.Receipt)}
	if !it.Op.Settles() {
		it.decision.Receipt = algorithms.Receipt{}
	}
}
