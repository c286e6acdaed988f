// Returns of algorithms that count a unit in full or not at all. For them a returned unit is as if it had never been
// taken, so random takes and returns are compared with a definition whose history is rewritten.

package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A rewritable model undoes units of the i-th charge as if they had never been charged.
type rewritable interface {
	model
	giveBack(i int, units int64)
}

func runUndone(t *testing.T, s Subject) {
	for _, a := range windowed() {
		t.Run(a.name()+" undone", func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, "exactly the units that were taken and not returned count")
			for range max(1, s.traces(t)/4) {
				if w.fresh().undo(r, a.of(20, time.Minute)); t.Failed() {
					return
				}
			}
		})
	}
}

func (w *world) undo(r source, l algorithms.Limit) {
	w.Helper()
	model := algorithmOf(l).model(l).(rewritable)
	ideal := ideal{l, model}
	var taken []algorithms.Check
	for range 40 {
		longest := pick(r, µs, l.Window()/12, l.Window()*2/3)
		w.sleep(time.Duration(r.Int64N(longest.Microseconds())) * µs)
		now := w.clock.instant()
		if c := w.allow(w.on("", l, 1+r.Int64N(8)))[0]; c.Decision.Allowed {
			taken = append(taken, c)
			model.charge(now, c.Cost)
		}
		if len(taken) > 0 && r.IntN(2) == 0 {
			i := len(taken) - 1 - r.IntN(min(6, len(taken)))
			if units := taken[i].Decision.Receipt.Units(); units > 0 {
				part := 1 + r.Int64N(units)
				taken[i] = w.allow(back(taken[i], part))[0]
				model.giveBack(i, part)
			}
		}
		if got, want := w.peek(w.on("", l, 0)).Remaining, ideal.remaining(now); got != want {
			w.errorf("%v at %d: got %d remaining, want %d", l, now-epoch, got, want)
			return
		}
	}
}
