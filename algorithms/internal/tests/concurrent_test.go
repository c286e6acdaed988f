// A limit of concurrent requests against a model: the units that should be held.

package tests

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A heldUnit is one of a take, in the model of a limit of concurrent requests.
type heldUnit struct {
	take, unit int
	until      int64
}

// A holdModel is a limiter beside the set of units that should be held.
type holdModel struct {
	limiter algorithms.Limiter
	clock   *atomic.Int64 // µs
	limit   algorithms.Limit
	key     string
	held    []heldUnit
	taken   []algorithms.Check // with their latest receipts
}

// now forgets what has ended.
func (m *holdModel) now() int64 {
	now := m.clock.Load()
	m.held = slices.DeleteFunc(m.held, func(h heldUnit) bool { return h.until <= now })
	return now
}

func (m *holdModel) ask(t *rapid.T, c algorithms.Check) algorithms.Decision {
	checks := []algorithms.Check{c}
	if err := m.limiter.Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	n, limit := len(m.held), int(m.limit.Requests())
	if checks[0].Op != algorithms.Take && checks[0].Decision.Remaining != int64(max(0, limit-n)) {
		t.Fatalf("%v: got %d remaining, want %d of %d held", c.Op, checks[0].Decision.Remaining, n, limit)
	}
	return checks[0].Decision
}

func (m *holdModel) take(t *rapid.T) {
	now, cost := m.now(), int(rapid.Int64Range(1, m.limit.Requests()).Draw(t, "cost"))
	c := algorithms.Check{Policy: "p", Key: m.key, Limit: m.limit, Cost: int64(cost)}
	fits := len(m.held)+cost <= int(m.limit.Requests())
	d := m.ask(t, c)
	if d.Allowed != fits {
		t.Fatalf("a take of %d: got %+v, want allowed %t with %d held", cost, d, fits, len(m.held))
	}
	if !fits {
		return
	}
	for unit := range cost {
		m.held = append(m.held, heldUnit{len(m.taken), unit, now + m.limit.Window().Microseconds()})
	}
	c.Decision = d
	m.taken = append(m.taken, c)
}

// pick returns the number of a take, and a check that settles it.
func (m *holdModel) pick(t *rapid.T, op algorithms.Op) (int, algorithms.Check) {
	if len(m.taken) == 0 {
		t.Skip("nothing was taken")
	}
	i := rapid.IntRange(max(0, len(m.taken)-6), len(m.taken)-1).Draw(t, "take")
	c := m.taken[i]
	c.Op = op
	return i, c
}

func (m *holdModel) giveBack(t *rapid.T) {
	m.now()
	i, c := m.pick(t, algorithms.Return)
	left := int(c.Decision.Receipt.Units())
	c.Cost = int64(rapid.IntRange(0, left+1).Draw(t, "units"))
	units := min(int(c.Cost), left)
	m.held = slices.DeleteFunc(m.held, func(h heldUnit) bool { return h.take == i && h.unit >= left-units && h.unit < left })
	d := m.ask(t, c)
	if int(d.Receipt.Units()) != left-units {
		t.Fatalf("a return of %d: got a receipt of %d, want %d", units, d.Receipt.Units(), left-units)
	}
	if rapid.Bool().Draw(t, "forget the receipt") { // and return it once more, some day
		return
	}
	m.taken[i].Decision = d
}

func (m *holdModel) renew(t *rapid.T) {
	now := m.now()
	i, c := m.pick(t, algorithms.Renew)
	for unit := range int(c.Decision.Receipt.Units()) {
		h := heldUnit{i, unit, now + m.limit.Window().Microseconds()}
		at := slices.IndexFunc(m.held, func(h heldUnit) bool { return h.take == i && h.unit == unit })
		switch {
		case at >= 0:
			m.held[at] = h
		case len(m.held) < 2*int(m.limit.Requests()):
			m.held = append(m.held, h)
		}
	}
	if d := m.ask(t, c); d.Receipt != c.Decision.Receipt {
		t.Fatalf("a renewal: got the receipt %+v, want it as it was, %+v", d.Receipt, c.Decision.Receipt)
	}
}

func (m *holdModel) check(t *rapid.T) {
	m.now()
	m.ask(t, algorithms.Check{Policy: "p", Key: m.key, Limit: m.limit, Op: algorithms.Grant})
}

func (m *holdModel) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"take": m.take, "take again": m.take, "return": m.giveBack, "renew": m.renew, "": m.check,
		"wait": func(t *rapid.T) {
			m.clock.Add(rapid.SampledFrom([]int64{1, 1_000, 400_000, 999_999, 1_000_000}).Draw(t, "µs"))
		},
		"reset": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
				m.held = nil
				m.ask(t, algorithms.Check{Policy: "p", Key: m.key, Limit: m.limit, Op: algorithms.Reset})
			}
		},
	})
}

// The limiter holds exactly the units of the model, after any takes, returns
// and renewals.
func TestHoldsAreAsModelled(t *testing.T) {
	client := redistest.Start(t).Client()
	for name, of := range map[string]func(func() time.Time) algorithms.Limiter{
		"Memory": func(now func() time.Time) algorithms.Limiter {
			return algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 10_000, Now: limitertest.ExceptForSweeps(now)})
		},
		"Redis": func(now func() time.Time) algorithms.Limiter { return newShared(t, client, now) },
	} {
		t.Run(name, func(t *testing.T) {
			clock, runs := new(atomic.Int64), 0
			clock.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixMicro())
			limiter := of(func() time.Time { return time.UnixMicro(clock.Load()) })
			rapid.Check(t, func(t *rapid.T) {
				runs++
				n := rapid.Int64Range(1, 5).Draw(t, "n")
				m := &holdModel{
					limiter: limiter, clock: clock, limit: algorithms.Concurrent(n, time.Second), key: fmt.Sprintf("usr=%d", runs),
				}
				m.run(t)
			})
		})
	}
}
