// Calls that are decided without the primary and that it executes later.

package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// lateLimit is a limit whose units do not come back in a test.
var lateLimit = algorithms.TokenBucket(10, 9_000*time.Hour)

// A lateOrder is when the reply to a call comes: before its decision, after it,
// or at the same time.
type lateOrder struct {
	name string
	set  func(w *world, reply func(*call))
	wait func(w *world, reply func(*call))
}

var lateOrders = []lateOrder{
	{"the reply first", func(w *world, reply func(*call)) { w.shared.onOverdue = reply }, nil},
	{"the decision first", nil, func(w *world, reply func(*call)) {
		for _, c := range w.shared.overdue {
			reply(c)
		}
	}},
	{"both at once", func(w *world, reply func(*call)) {
		w.shared.onOverdue = func(c *call) { go reply(c) }
	}, nil},
}

// The replies to late calls.
var lateReplies = map[string]func(w *world, c *call){
	"charged": func(w *world, c *call) { w.shared.reply(c, nil) },
	"denied": func(w *world, c *call) {
		for i := range c.items {
			it := &c.items[i]
			force := algorithms.Check{Policy: it.Key.Policy, Key: it.Key.Text, Limit: algorithms.LimitOf(it.Limit), Op: algorithms.Force, Cost: it.Limit.Burst}
			_ = w.shared.store.Allow(context.Background(), []algorithms.Check{force})
		}
		w.shared.reply(c, nil)
	},
	"not executed": func(w *world, c *call) { w.shared.reply(c, errReadonly) },
	"perhaps":      func(w *world, c *call) { w.shared.reply(c, errLost) },
	"none":         func(*world, *call) {},
}

// A lateCall is a call that times out, and how it is decided.
type lateCall struct {
	before func(w *world) // after which the primary hangs
	checks []algorithms.Check
	leaves bool // the caller, before the deadline
	err    error

	// What the last reply makes of the units of each check, by the reply.
	charged []int64 // with the reply "charged": the primary holds so many
	unknown int64   // with no certain reply
}

func taking(key string, change func(c *algorithms.Check)) algorithms.Check {
	c := checkOf(key, lateLimit, 3)
	if change != nil {
		change(&c)
	}
	return c
}

var lateCalls = map[string]lateCall{
	"admitted": {checks: []algorithms.Check{taking("usr=1", nil)}, charged: []int64{3}, unknown: 3},
	"admitted, a window": {
		checks:  []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Limit = algorithms.FixedWindow(10, 9_000*time.Hour) })},
		charged: []int64{3}, unknown: 3,
	},
	"admitted, two keys": {checks: []algorithms.Check{taking("usr=1", nil), taking("usr=2", nil)}, charged: []int64{3, 3}, unknown: 6},
	"admitted, beside a trial": {
		checks:  []algorithms.Check{taking("usr=1", nil), taking("usr=2", func(c *algorithms.Check) { c.Op = algorithms.Trial })},
		charged: []int64{3, 3}, unknown: 6,
	},
	"passed": {checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Fail = algorithms.FailOpen })}, charged: []int64{3}},
	"concurrent": {
		checks:  []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Limit = algorithms.Concurrent(10, 9_000*time.Hour) })},
		charged: []int64{0},
	},
	"concurrent, passed": {
		checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) {
			c.Limit, c.Fail = algorithms.Concurrent(10, 9_000*time.Hour), algorithms.FailOpen
		})},
		charged: []int64{0},
	},
	"admitted beside concurrent": {
		checks:  []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Limit = algorithms.Concurrent(10, 9_000*time.Hour) }), taking("usr=2", nil)},
		charged: []int64{0, 3}, unknown: 3,
	},
	"nothing": {checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Cost = 0 })}, charged: []int64{0}},
	"refused": {
		checks: []algorithms.Check{taking("usr=1", nil), taking("usr=2", func(c *algorithms.Check) { c.Fail = algorithms.FailClosed })},
		err:    algorithms.ErrUnavailable, charged: []int64{0, 0},
	},
	"denied locally": {
		before: func(w *world) { take(w.t, w.memory, "usr=1", lateLimit, 8) },
		checks: []algorithms.Check{taking("usr=2", nil), taking("usr=1", nil)}, charged: []int64{0, 0},
	},
	"the caller left": {checks: []algorithms.Check{taking("usr=1", nil)}, leaves: true, err: context.Canceled, charged: []int64{0}},
	"the caller left, without a share": {
		checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Limit = algorithms.Concurrent(10, 9_000*time.Hour) })},
		leaves: true, err: context.Canceled, charged: []int64{0},
	},
	"forced": {checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Op = algorithms.Force })}, charged: []int64{3}, unknown: 3},
	"forced, open": {
		checks:  []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Op, c.Fail = algorithms.Force, algorithms.FailOpen })},
		charged: []int64{3},
	},
	"forced, and the caller left": {
		checks: []algorithms.Check{taking("usr=1", func(c *algorithms.Check) { c.Op = algorithms.Force })},
		leaves: true, err: context.Canceled, charged: []int64{3},
	},
}

// Each row of the table in fallback_overdue.go, in each order.
func TestLateCalls(t *testing.T) {
	for name, tt := range lateCalls {
		for said, reply := range lateReplies {
			for _, order := range lateOrders {
				t.Run(fmt.Sprintf("%s/%s/%s", name, said, order.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { tt.run(t, said, func(w *world, c *call) { reply(w, c) }, order) })
				})
			}
		}
	}
}

func (tt *lateCall) run(t *testing.T, said string, reply func(*world, *call), order lateOrder) {
	w := newWorld(t, nil)
	if tt.before != nil {
		tt.before(w)
	}
	w.shared.hangs()
	answer := func(c *call) { reply(w, c) }
	if order.set != nil {
		order.set(w, answer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if tt.leaves {
		time.AfterFunc(10*time.Millisecond, cancel)
	}
	checks := append([]algorithms.Check(nil), tt.checks...)
	if err := w.Allow(ctx, checks); !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
		t.Fatalf("got error %v, want %v", err, tt.err)
	}
	if got := w.stats().Unknown; order.wait != nil && got != tt.unknown {
		t.Errorf("before a reply, %d units are unknown, want %d", got, tt.unknown)
	}
	if order.wait != nil {
		order.wait(w, answer)
	}
	synctest.Wait()
	var want fallbackStats
	switch said {
	case "denied", "not executed":
		if want.Lost = uint64(tt.unknown); said == "denied" && tt.checks[0].Op == algorithms.Force {
			want.Lost = 0 // a force is always charged
		}
	case "perhaps", "none":
		want.Unknown = tt.unknown
	}
	if got := w.stats(); got.Unknown != want.Unknown || got.Lost != want.Lost || got.Owed != 0 || got.HandedBack != 0 {
		t.Errorf("got %+v, want %d unknown, %d lost, and none owed", got, want.Unknown, want.Lost)
	}
	returned := 0
	for i, c := range tt.checks {
		held := used(t, w.shared.store, c.Key, c.Limit)
		if most := tt.charged[i]; said == "charged" && held != most {
			t.Errorf("%s: the primary holds %d, want %d", c.Key, held, most)
		}
		if said == "charged" && tt.charged[i] == 0 && c.Cost > 0 {
			returned++
		}
		if said != "charged" && said != "denied" && held != 0 {
			t.Errorf("%s: the primary holds %d of a call that it has not executed", c.Key, held)
		}
	}
	if got := len(w.shared.returnedLate()); got != returned {
		t.Errorf("%d takes were returned, want %d", got, returned)
	}
}

// A call that a remembered denial has refused is returned, too.
func TestLateCallOfAnOldDenial(t *testing.T) {
	for _, order := range lateOrders {
		synctest.Test(t, func(t *testing.T) {
			w := remembering(t, Options{})
			w.take("usr=1", lateLimit, 9)
			w.take("usr=1", lateLimit, 2) // denied
			time.Sleep(2 * time.Second)
			reset := algorithms.Check{Policy: "default", Key: "usr=1", Limit: lateLimit, Op: algorithms.Reset}
			if err := w.shared.store.Allow(t.Context(), []algorithms.Check{reset}); err != nil { // by another instance
				t.Fatal(err)
			}
			w.shared.hangs()
			answer := func(c *call) { w.shared.reply(c, nil) }
			if order.set != nil {
				order.set(w, answer)
			}
			checks := []algorithms.Check{checkOf("usr=2", lateLimit, 3), checkOf("usr=1", lateLimit, 2)}
			if err := w.Allow(t.Context(), checks); err != nil || algorithms.Allowed(checks) {
				t.Fatalf("got %+v, %v, want it denied from memory", checks, err)
			}
			if order.wait != nil {
				order.wait(w, answer)
			}
			synctest.Wait()
			for _, key := range []string{"usr=1", "usr=2"} {
				if got := used(t, w.shared.store, key, lateLimit); got != 0 {
					t.Errorf("%s, %s: the primary holds %d, want it returned", order.name, key, got)
				}
			}
			if got := w.stats(); got.Unknown != 0 || got.Lost != 0 || got.Owed != 0 {
				t.Errorf("%s: got %+v, want nothing unknown, lost or owed", order.name, got)
			}
		})
	}
}

// A Return without an answer waits for it. If the primary executes it later, it
// stays executed, and nothing is unknown.
func TestLateReturn(t *testing.T) {
	for _, order := range lateOrders {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			taken := w.take("usr=1", lateLimit, 5)
			w.shared.hangs()
			answer := func(c *call) { w.shared.reply(c, nil) }
			if order.set != nil {
				order.set(w, answer)
			}
			d, err := w.settle(algorithms.Check{Key: "usr=1", Limit: lateLimit, Op: algorithms.Return, Cost: 5, Decision: taken})
			if err != nil || d.Source != algorithms.Undecided || d.Receipt.Units() != 0 {
				t.Errorf("%s: got %+v, %v, want the limiter to have it, with its receipt", order.name, d, err)
			}
			if order.wait != nil {
				order.wait(w, answer)
			}
			synctest.Wait()
			if got := used(t, w.shared.store, "usr=1", lateLimit); got != 0 {
				t.Errorf("%s: the primary holds %d, want none", order.name, got)
			}
			if got := w.stats(); got.Unknown != 0 || got.Lost != 0 || got.Owed != 0 || got.Returns != 0 || got.ReturnsLost != 0 || len(w.shared.returnedLate()) != 0 {
				t.Errorf("%s: got %+v, want nothing unknown, lost or owed", order.name, got)
			}
		})
	}
}

// Only the units of the Force are unknown until the reply, if a Return is in the same call.
func TestLateForceBesideAReturn(t *testing.T) {
	for reply, lost := range map[error]uint64{nil: 0, errReadonly: 3} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			back := checkOf("usr=1", lateLimit, 4)
			back.Decision = w.take("usr=1", lateLimit, 4)
			back.Op = algorithms.Return
			force := checkOf("usr=2", lateLimit, 3)
			force.Op = algorithms.Force
			w.shared.hangs()
			if err := w.Allow(t.Context(), []algorithms.Check{force, back}); err != nil || w.stats().Unknown != 3 {
				t.Errorf("reply %v: got %v and %+v, want 3 units unknown", reply, err, w.stats())
			}
			w.shared.replyAll(reply)
			if got := w.stats(); got.Unknown != 0 || got.Lost != lost {
				t.Errorf("reply %v: got %+v, want none unknown, and %d lost", reply, got, lost)
			}
		})
	}
}

// Decisions and replies that race leave the same sums: for the race detector.
func TestLateCallsConcurrently(t *testing.T) {
	const callers, calls = 20, 30
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
		w.shared.circuit = circuit.New(time.Hour).Add() // it never opens
		w.start(w.shared, nil)
		w.shared.hangs()
		w.shared.onOverdue = func(c *call) { go w.shared.reply(c, nil) }
		wide := algorithms.FixedWindow(1_000_000, 9_000*time.Hour)
		var all sync.WaitGroup
		for g := range callers {
			all.Go(func() {
				for i := range calls {
					c := algorithms.Check{Policy: "default", Key: fmt.Sprint("usr=", i%3), Limit: wide, Cost: 1}
					if g%2 == 1 {
						c.Fail = algorithms.FailClosed
					}
					_ = w.Allow(context.Background(), []algorithms.Check{c})
				}
			})
		}
		all.Wait()
		synctest.Wait()
		var held int64
		for i := range 3 {
			held += used(t, w.shared.store, fmt.Sprint("usr=", i), wide)
		}
		if got := w.stats(); held != callers*calls/2 || got.Unknown != 0 || got.Lost != 0 || got.Owed != 0 {
			t.Errorf("the primary holds %d, %+v; want the %d units of the admitted calls", held, got, callers*calls/2)
		}
	})
}
