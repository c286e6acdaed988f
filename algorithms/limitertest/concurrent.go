// Concurrent requests: each unit of a take is held until it is returned, or for one window.
//
//	in use     = the units taken or renewed within the last window, without returned ones
//	RetryAfter = until enough of the oldest units are one window old
//	ResetAfter = until the newest unit is one window old
//
// The state is a sorted set with one member per unit. A member's name includes a random id, so vectors do not compare
// the text in the store.

package limitertest

import (
	"math/big"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

var _ = register(algorithm{
	of:      algorithms.Concurrent,
	most:    10_000,
	family:  held,
	tag:     "co",
	storage: sets,
	model:   newHolds,
	vectors: concurrentTraces,
})

// A holds model counts each unit by itself, until it is returned or a window has passed.
type holds struct {
	limit, window int64
	charges       int
	all           []hold
}

type hold struct {
	charge      int
	unit, until int64
}

func newHolds(l algorithms.Limit) model {
	return &holds{limit: l.Requests(), window: l.Window().Microseconds()}
}

func (h *holds) used(now int64) *big.Rat { return new(big.Rat).SetInt64(h.held(now)) }

func (h *holds) held(now int64) (units int64) {
	for _, hold := range h.all {
		if hold.until > now {
			units++
		}
	}
	return units
}

func (h *holds) charge(now, units int64) {
	for unit := range units {
		h.all = append(h.all, hold{h.charges, unit, now + h.window})
	}
	h.charges++
}

func (h *holds) room(now int64) int64 { return max(0, 2*h.limit-h.held(now)) }

// grant frees the units that end first.
func (h *holds) grant(now, units int64) {
	h.all = slices.DeleteFunc(h.all, func(hold hold) bool { return hold.until <= now })
	slices.SortStableFunc(h.all, func(a, b hold) int { return int(a.until - b.until) })
	h.all = h.all[min(units, int64(len(h.all))):]
}

func (h *holds) giveBack(_ int64, charge int, left, part int64) {
	h.all = slices.DeleteFunc(h.all, func(hold hold) bool {
		return hold.charge == charge && hold.unit >= left-part && hold.unit < left
	})
}

// renew holds the units that are left for another window: also units that have ended, up to twice the limit.
func (h *holds) renew(now int64, charge int, left int64) {
	renewed := make([]hold, left)
	for unit := range left {
		renewed[unit] = hold{charge, unit, now + h.window}
	}
	ended := slices.Clone(renewed)
	for _, live := range h.all {
		if live.charge == charge && live.unit < left && live.until > now {
			ended[live.unit].until = 0
		}
	}
	ended = slices.DeleteFunc(ended, func(hold hold) bool { return hold.until == 0 })
	dropped := ended[min(h.room(now), int64(len(ended))):]
	h.giveBack(now, charge, left, left)
	for _, hold := range renewed {
		if !slices.Contains(dropped, hold) {
			h.all = append(h.all, hold)
		}
	}
}

var concurrent3 = algorithms.Concurrent(3, time.Minute)

var concurrentTraces = []trace{
	{"units are held until they are returned, or for one window", concurrent3, []step{
		take(0, 2).yes(1, 60*second),
		take(10*second, 1).yes(0, 60*second),
		// The take of 2 ends at 60 s, the take of 1 at 70 s.
		take(20*second, 1).no(0, 40*second, 50*second),
		take(20*second, 2).no(0, 40*second, 50*second),
		take(20*second, 3).no(0, 50*second, 50*second),
		giveBack(20*second, 1, 0).yes(1, 50*second),
		take(60*second-1, 3).no(1, 10*second+1, 10*second+1),
		take(60*second, 2).yes(0, 60*second),
		giveBack(61*second, 2, 0).yes(0, 59*second), // its last unit has ended by itself
	}},
	{"a Grant frees the oldest units, and a Force holds at most twice the limit", concurrent3, []step{
		take(0, 1).yes(2, 60*second),
		take(10*second, 2).yes(0, 60*second),
		grant(20*second, 1).yes(1, 50*second),
		take(20*second, 2).no(1, 50*second, 50*second), // the next unit ends at 70 s, not at 60 s
		force(20*second, 9).yes(0, 60*second),          // 2 + 4 of 9
		// Two end at 70 s, then four are held under a limit of 3 until 80 s.
		take(20*second, 0).no(0, 60*second, 60*second),
		take(79_999_999, 0).no(0, 1, 1),
		take(80*second, 3).yes(0, 60*second),
	}},
	{"after a step back of the clock units from the future are held from the present on", concurrent3, []step{
		take(0, 2).yes(1, 60*second),
		take(-60*second, 2).no(1, 60*second, 60*second),
		take(-1, 2).no(1, 1, 1),
		take(0, 2).yes(1, 60*second),
	}},
	{"a late caller's units are held from the newest instant on", concurrent3, []step{
		take(0, 2).yes(1, 60*second),
		take(-100_000, 1).yes(0, 60_100_000),
		take(-100_000, 1).no(0, 60_100_000, 60_100_000),
	}},
}
