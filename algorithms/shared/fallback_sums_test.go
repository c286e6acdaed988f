// Whatever happens to the primary, every admitted unit is charged there, owed,
// lost or unknown, and none of them is two of these.

package shared

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A sumStep is one step of a random sequence. It lets time pass, changes the
// primary's trouble, ends late calls, or makes a call.
type sumStep struct {
	after   time.Duration
	trouble string // of calls from now on; "": as before
	late    string // how all late calls end; "": not yet

	keys   []int // of the call; none: no call
	cost   int64
	fail   algorithms.FailureMode
	force  bool
	leaves bool // the caller of a take, before the deadline
	early  bool // if the call is late, it has its reply before its decision
}

var sumTroubles = map[string]func(context.Context) error{
	"none": nil, "refused": failing(errRefused), "read-only": failing(errReadonly), "lost": failing(errLost), "hangs": hang,
}

var sumReplies = map[string]error{"executed": nil, "read-only": errReadonly, "lost": errLost}

var sumSteps = rapid.Custom(func(r *rapid.T) sumStep {
	s := sumStep{after: time.Duration(rapid.SampledFrom([]int{0, 1, 10, 60, 300, 1_100}).Draw(r, "after")) * time.Millisecond}
	switch rapid.SampledFrom([]string{"call", "call", "call", "call", "trouble", "late"}).Draw(r, "what") {
	case "trouble":
		s.trouble = rapid.SampledFrom([]string{"none", "none", "refused", "read-only", "lost", "hangs", "hangs"}).Draw(r, "trouble")
	case "late":
		s.late = rapid.SampledFrom([]string{"executed", "executed", "read-only", "lost"}).Draw(r, "late")
	default:
		s.keys = rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 2, rapid.ID).Draw(r, "keys")
		s.cost = rapid.Int64Range(0, 5).Draw(r, "cost")
		s.fail = rapid.SampledFrom([]algorithms.FailureMode{algorithms.FailLocal, algorithms.FailLocal, algorithms.FailClosed}).Draw(r, "fail")
		s.force = rapid.IntRange(0, 4).Draw(r, "force") == 0
		s.leaves = rapid.IntRange(0, 4).Draw(r, "leaves") == 0
		s.early = rapid.Bool().Draw(r, "early")
	}
	return s
})

// sumLimits are so large that nothing comes back and nothing is denied.
var sumLimits = []algorithms.Limit{
	algorithms.TokenBucket(1, 9_000*time.Hour).WithBurst(1_000_000),
	algorithms.SlidingWindowCounter(1_000_000, 9_000*time.Hour),
	algorithms.SlidingWindowLog(10_000, 9_000*time.Hour),
	algorithms.FixedWindow(1_000_000, 9_000*time.Hour),
}

// For random sequences of takes, forces, outages, late replies and hand-backs,
// and for each key:
//
//	admitted = charged at the primary - kept Returns + owed + lost + unknown
func TestSumsHold(t *testing.T) {
	t.Parallel()
	steps := rapid.SliceOfN(sumSteps, 1, 60)
	rapid.Check(t, func(r *rapid.T) {
		plan := steps.Draw(r, "steps")
		limit := rapid.SampledFrom(sumLimits).Draw(r, "limit")
		instances := rapid.SampledFrom([]int{1, 3}).Draw(r, "instances")
		if rapid.Bool().Draw(r, "one key") { // so that the sums are those of the key
			for i := range plan {
				plan[i].keys = plan[i].keys[:min(1, len(plan[i].keys))]
				if len(plan[i].keys) > 0 {
					plan[i].keys[0] = 0
				}
			}
		}
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			m := &sums{world: newWorld(t, &Options{Instances: instances}), limit: limit}
			wrong = m.run(plan)
		})
		if wrong != nil {
			r.Fatal(wrong)
		}
	})
}

// sums knows what was admitted.
type sums struct {
	*world
	limit    algorithms.Limit
	callers  sync.WaitGroup
	inFlight atomic.Int64

	mu       sync.Mutex
	admitted map[string]int64
}

func (m *sums) run(plan []sumStep) error {
	m.admitted = make(map[string]int64)
	m.shared.onOverdue = func(c *call) {
		if c.items[0].exact { // of a step with an early reply
			m.shared.reply(c, nil)
		}
	}
	for i, s := range plan {
		time.Sleep(s.after)
		switch {
		case s.trouble != "":
			m.shared.troubled(sumTroubles[s.trouble])
		case s.late != "":
			m.shared.replyAll(sumReplies[s.late])
		default:
			m.call(s)
		}
		if err := m.check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	m.callers.Wait()
	m.shared.troubled(nil)
	time.Sleep(10 * time.Second)
	if err := m.check(); err != nil {
		return fmt.Errorf("after 10 s: %w", err)
	}
	_, sending, _ := m.owed()
	if got := m.stats(); got.Open != 0 || got.Owed != sending {
		return fmt.Errorf("after 10 s: got %+v, want it closed, and no debts but the %d under way", got, sending)
	}
	m.shared.replyAll(nil)
	time.Sleep(2 * handBackEvery) // what came to be owed beside a late hand-back follows it
	if got := m.stats(); got.Owed != 0 || got.Returns != 0 {
		return fmt.Errorf("after all replies: got %+v, want nothing owed, and no Return kept", got)
	}
	return m.check()
}

// call makes the call of a step. It may outlast the step.
func (m *sums) call(s sumStep) {
	checks := make([]algorithms.Check, len(s.keys))
	for i, key := range s.keys {
		checks[i] = checkOf(fmt.Sprint("usr=", key), m.limit, s.cost)
		if checks[i].Exact = s.early; s.force {
			checks[i].Op = algorithms.Force
		} else if i == len(s.keys)-1 {
			checks[i].Fail = s.fail
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	if s.leaves && !s.force {
		time.AfterFunc(20*time.Millisecond, cancel)
	}
	m.inFlight.Add(1)
	m.callers.Go(func() {
		defer m.inFlight.Add(-1)
		defer cancel()
		if err := m.Allow(ctx, checks); err != nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, c := range checks {
			m.admitted[c.Key] += c.Cost
		}
	})
}

// check compares the sums, unless calls or hand-backs are under way.
func (m *sums) check() error {
	synctest.Wait()
	owed, sending, late := m.owed()
	kept, returning := m.kept()
	if m.inFlight.Load() > 0 || sending != late || returning {
		return nil
	}
	var apart int64
	for i := range 3 {
		key := fmt.Sprint("usr=", i)
		admitted, charged := m.admitted[key], used(m.t, m.shared.store, key, m.limit)-kept[key]
		rest := admitted - charged - owed[key]
		if rest < 0 {
			return fmt.Errorf("%s: %d were admitted, %d are charged and %d owed", key, admitted, charged, owed[key])
		}
		apart += rest
	}
	if got := m.stats(); int64(got.Lost)+got.Unknown != apart || got.Unknown < 0 {
		return fmt.Errorf("got %+v, want %d lost or unknown: admitted %v, owed %v", got, apart, m.admitted, owed)
	}
	return nil
}

// kept returns the units of Returns that wait for the primary, and reports whether any is under way.
func (m *sums) kept() (units map[string]int64, underWay bool) {
	units = make(map[string]int64)
	l := m.fallback.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.returns {
		units[one.key.Text] += one.cost
		underWay = underWay || one.sending
	}
	return units, underWay
}

// owed returns the units that are owed, also by late hand-backs, and the numbers of
// hand-backs under way and of late ones.
func (m *sums) owed() (owed map[string]int64, sending, late int) {
	owed = make(map[string]int64)
	l := m.fallback.ledger
	l.mu.Lock()
	for key, d := range l.debts {
		if d.rest != nil {
			d = d.rest
			sending++
		}
		owed[key.Text] += d.bringTo(m.fallback.now())
	}
	l.mu.Unlock()
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	for _, c := range m.shared.overdue {
		if it := &c.items[0]; it.Op == step.Backfill {
			owed[it.Key.Text] += it.Cost
			late++
		}
	}
	return owed, sending, late
}
