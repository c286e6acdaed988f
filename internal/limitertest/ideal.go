package limitertest

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Ideal plays random traces on limiters of a subject, one limit each and a clock that does not step back, and wants
// the answers of a model that is written from the definitions, in rational numbers, and knows no formula: its figures
// are found by search.
func Ideal(t *testing.T, s Subject, traces int) {
	for _, of := range everyConstructor {
		t.Run(of(1, time.Second).Algorithm().String(), func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, "verdicts and figures are those of the definition, in rational numbers")
			for range envTraces(t, traces) {
				if w.fresh().idealTrace(r, r.limit(of)); t.Failed() {
					return
				}
			}
		})
	}
}

func (w *world) idealTrace(r source, l algorithms.Limit) {
	w.Helper()
	ideal := ideal{limit: l, model: models[l.Algorithm().String()](l)}
	var retry time.Duration
	var story []string
	for range 25 {
		pause := max(0, r.pause(l))
		if retry > 0 && retry != algorithms.Never && r.IntN(2) == 0 {
			pause = retry - pick(r, 0, µs)
		}
		w.move(pause)
		c := w.on("", l, r.cost(l))
		if r.IntN(12) == 0 {
			c.Op = algorithms.Force
		}
		got := w.one(c)
		want := ideal.ask(c, w.clock.instant())
		want.Source, want.Receipt = got.Source, got.Receipt
		story = append(story, number(w.clock.instant()-epoch)+": "+c.Op.String()+" "+number(c.Cost))
		if show(got) != show(want) {
			w.errorf("%v after %q:\n\tgot  %s\n\twant %s", l, story, show(got), show(want))
			return
		}
		retry = got.RetryAfter
	}
}

// A model is the definition of an algorithm. It is asked at instants that never step back.
type model interface {
	// used returns what is in use at an instant at or after the last charge.
	used(now int64) *big.Rat

	// charge adds units.
	charge(now, units int64)

	// room returns how many units may be charged until there is one burst of debt.
	room(now int64) int64
}

var models = map[string]func(algorithms.Limit) model{
	"token-bucket":           newBucket,
	"leaky-bucket":           newBucket,
	"sliding-window-counter": newCounts,
	"sliding-window-log":     newLog,
	"fixed-window":           newCounts,
	"calendar-window":        newDates,
	"concurrent":             newLog, // if nobody returns, a unit is held for a window
}

// An ideal answers from a model.
type ideal struct {
	limit algorithms.Limit
	model model
}

func (m *ideal) ask(c algorithms.Check, now int64) algorithms.Decision {
	d := algorithms.Decision{Allowed: c.Op == algorithms.Force || m.fits(now, c.Cost)}
	switch {
	case !d.Allowed:
		d.RetryAfter = m.first(now, func(then int64) bool { return m.fits(then, c.Cost) })
	case c.Op == algorithms.Force:
		m.model.charge(now, min(c.Cost, m.model.room(now)))
	default:
		if m.limit.Algorithm().String() == "leaky-bucket" && c.Cost > 0 {
			d.Delay = m.first(now, func(then int64) bool { return m.model.used(then).Sign() == 0 })
		}
		m.model.charge(now, c.Cost)
	}
	d.Remaining = m.remaining(now)
	d.ResetAfter = m.first(now, func(then int64) bool { return m.fits(then, m.limit.Burst()) })
	d.UnitAfter = m.first(now, func(then int64) bool { return m.fits(then, 1) })
	return d
}

// fits is the definition of all: what is in use and the cost are no more than the burst.
func (m *ideal) fits(now, cost int64) bool {
	sum := m.model.used(now)
	return sum.Add(sum, new(big.Rat).SetInt64(cost)).Cmp(new(big.Rat).SetInt64(m.limit.Burst())) <= 0
}

// remaining returns the highest cost that fits.
func (m *ideal) remaining(now int64) int64 {
	var low, high int64 = 0, m.limit.Burst() + 1 // low fits, or is 0; high does not
	for high-low > 1 {
		if middle := low + (high-low)/2; m.fits(now, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// first returns how long until the first µs at which ok holds; once it does it must go on to.
func (m *ideal) first(now int64, ok func(int64) bool) time.Duration {
	if ok(now) {
		return 0
	}
	var low, high int64 = 0, math.MaxInt64 / 1000 // what a Duration expresses
	if !ok(now + high) {
		return algorithms.Never
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; ok(now + middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return time.Duration(high) * µs
}

// A bucket has a level, which falls evenly and stops at 0.
type bucket struct {
	rate  *big.Rat // units per µs
	burst int64
	level *big.Rat
	at    int64
}

func newBucket(l algorithms.Limit) model {
	return &bucket{big.NewRat(l.Requests(), l.Window().Microseconds()), l.Burst(), new(big.Rat), 0}
}

func (b *bucket) used(now int64) *big.Rat {
	drained := new(big.Rat).SetInt64(now - b.at)
	level := new(big.Rat).Sub(b.level, drained.Mul(drained, b.rate))
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	return level
}

func (b *bucket) charge(now, units int64) {
	b.level, b.at = b.used(now), now
	b.level.Add(b.level, new(big.Rat).SetInt64(units))
}

// room counts whole units that are in use; part of a unit is one.
func (b *bucket) room(now int64) int64 {
	level := b.used(now)
	whole := new(big.Int).Add(level.Num(), new(big.Int).Sub(level.Denom(), big.NewInt(1)))
	return max(0, limitOfDebt(b.burst)-whole.Div(whole, level.Denom()).Int64())
}

// limitOfDebt is two bursts, as long as they are no more than 2^30.
func limitOfDebt(burst int64) int64 { return min(2*burst, 1<<30) }

// An admission is what was charged at an instant.
type admission struct{ at, units int64 }

// counts adds admissions up window by window.
type counts struct {
	limit    int64
	window   int64
	weighted bool // the previous window counts in the proportion that still overlaps; else its debt does
	all      []admission
}

func newCounts(l algorithms.Limit) model {
	return &counts{l.Requests(), l.Window().Microseconds(), l.Algorithm().String() == "sliding-window-counter", nil}
}

func (c *counts) used(now int64) *big.Rat {
	if !c.weighted {
		return new(big.Rat).SetInt64(c.owed(now))
	}
	elapsed := now % c.window
	sum := new(big.Rat).SetInt64(c.in(now - elapsed))
	share := big.NewRat(c.window-elapsed, c.window)
	return sum.Add(sum, share.Mul(share, new(big.Rat).SetInt64(c.in(now-elapsed-c.window))))
}

// in returns what was charged in the window that begins at start.
func (c *counts) in(start int64) (sum int64) {
	for _, a := range c.all {
		if a.at >= start && a.at < start+c.window {
			sum += a.units
		}
	}
	return sum
}

// owed returns what the window of now has used, with what earlier ones left: each pays one limit off.
func (c *counts) owed(now int64) (sum int64) {
	var window int64
	for _, a := range c.all {
		for ; window < a.at/c.window && sum > 0; window++ {
			sum = max(0, sum-c.limit)
		}
		window = a.at / c.window
		sum += a.units
	}
	for ; window < now/c.window && sum > 0; window++ {
		sum = max(0, sum-c.limit)
	}
	return sum
}

func (c *counts) charge(now, units int64) { c.all = append(c.all, admission{now, units}) }

func (c *counts) room(now int64) int64 {
	used := c.owed(now)
	if c.weighted {
		used = c.in(now - now%c.window)
	}
	return max(0, limitOfDebt(c.limit)-used)
}

// entries are admissions that count for one window each.
type entries struct {
	limit, window int64
	all           []admission
}

func newLog(l algorithms.Limit) model {
	return &entries{l.Requests(), l.Window().Microseconds(), nil}
}

func (e *entries) used(now int64) *big.Rat {
	var sum int64
	for _, a := range e.all {
		if now-a.at < e.window {
			sum += a.units
		}
	}
	return new(big.Rat).SetInt64(sum)
}

func (e *entries) charge(now, units int64) { e.all = append(e.all, admission{now, units}) }

func (e *entries) room(now int64) int64 {
	return max(0, limitOfDebt(e.limit)-e.used(now).Num().Int64())
}
