package limitertest

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// runUndone compares random takes and returns of the windows with the definition, in which a unit that was returned
// has never been.
func runUndone(t *testing.T, s Subject) {
	for _, of := range constructors[2:] {
		t.Run(of(1, time.Second).Algorithm().String()+" undone", func(t *testing.T) {
			t.Parallel()
			r := newSource(t)
			w := s.world(t, "a window counts what was taken and not returned, exactly")
			for range max(1, s.traces(t)/4) {
				if w.fresh().undo(r, of(20, time.Minute)); t.Failed() {
					return
				}
			}
		})
	}
}

func (w *world) undo(r source, l algorithms.Limit) {
	w.Helper()
	model := models[l.Algorithm().String()](l)
	var kept *[]admission
	switch m := model.(type) {
	case *counts:
		kept = &m.all
	case *entries:
		kept = &m.all
	}
	ideal := ideal{l, model}
	var taken []algorithms.Check
	for range 40 {
		w.sleep(time.Duration(r.Int64N(pick[int64](r, 1, 5*second, 40*second))) * µs)
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
				(*kept)[i].units -= part
			}
		}
		if got, want := w.peek(w.on("", l, 0)).Remaining, ideal.remaining(now); got != want {
			w.errorf("%v at %d: got %d remaining, want %d", l, now-epoch, got, want)
			return
		}
	}
}
