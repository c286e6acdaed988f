// Limiters that find a value which no limiter wrote: they return no error, admit no more than the limit, and write no
// key that never expires. Operators edit keys, and other programs may share the store.

package limitertest

import (
	"errors"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runCorrupt(t *testing.T, s Subject) {
	if s.Store == nil {
		return
	}
	t.Run("fractions", func(t *testing.T) { t.Parallel(); runFractions(t, s) })
	for _, a := range every() {
		t.Run(a.name()+" garbage", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "a value that does not parse counts as absent, and the next charge heals it")
			for _, p := range a.storage.garbage {
				w.fresh().heals(a.ten(), p)
			}
		})
		t.Run(a.name()+" lies", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "a value that parses never makes an error, never admits more than the limit, and expires")
			for _, p := range a.storage.lies {
				for _, minutes := range laterAndEarlier {
					w.fresh().bears(a.ten(), p, minutes)
				}
				w.fresh().bears(a.ten(), p, 0, append(settlements, algorithms.Take)...)
			}
			for _, p := range a.storage.garbage {
				w.fresh().bears(a.ten(), p, 0, algorithms.Force)
			}
		})
		t.Run(a.name()+" wrong kind", func(t *testing.T) {
			t.Parallel()
			w := s.world(t, "a key of another type is its call's error, and is never written or deleted")
			for _, kind := range []string{"string", "list", "hash"} {
				if kind != a.storage.kind {
					w.fresh().refuses(a.ten(), kind)
				}
			}
		})
	}
}

// runFractions plants fractions of a µs that no limiter writes. They count as the greatest that one writes.
func runFractions(t *testing.T, s Subject) {
	w := s.world(t, "a fraction of a bucket above r - 1 counts as r - 1")
	for _, a := range buckets() {
		l := a.of(7, time.Second)
		for _, at := range []int64{0, 1, 142_857, 142_858, 428_571, 428_572} {
			var want algorithms.Decision
			for _, f := range []string{"6", "7", "8", "9007199254740991"} {
				w := w.fresh()
				w.plant(w.on("", l, 0), "1763729430000000:7:"+f)
				w.to(at)
				got := w.take(l, 1)
				w.audit(w.on("", l, 1), got)
				got.Receipt = algorithms.Receipt{}
				if f == "6" {
					want = got
				} else if got != want {
					w.errorf("%v at %d with a fraction of %s: got %s, want %s", l, at, f, show(got), show(want))
				}
			}
		}
	}
}

// laterAndEarlier are instants (µs from the epoch) at which limits of one minute meet a lie.
var laterAndEarlier = []int64{-minute, -minute + 1, minute / 3, minute, minute + second, 150 * second}

// heals plants a value that does not parse, and wants a fresh key.
func (w *world) heals(l algorithms.Limit, p planted) {
	w.Helper()
	c := w.on("", l, 3)
	w.plant(c, p.raw)
	w.full(c)
	if d := w.one(w.on("", l, 11)); d.Allowed || d.Remaining != 10 {
		w.errorf("%v over %.60q (%s): got %s, want a denial and 10 remaining", l, p.raw, p.why, show(d))
	}
	if got := w.s.Store.Stored(w, c); got != p.raw && got != "" {
		w.errorf("%v over %.60q (%s): got %.60q stored after a denial, want it left or gone", l, p.raw, p.why, got)
	}
	d := w.one(c)
	if !d.Allowed || d.Remaining != 7 {
		w.errorf("%v over %.60q (%s): got %s, want 7 remaining", l, p.raw, p.why, show(d))
	}
	w.expires(c, d, injected)
	w.audit(c, d)
}

// bears plants any value, and asks ops of it, and then takes, at an instant that is scaled to the limit's window.
func (w *world) bears(l algorithms.Limit, p planted, at int64, ops ...algorithms.Op) {
	w.Helper()
	w.to(at * int64(l.Window()/time.Minute))
	c := w.on("", l, 1)
	for _, op := range ops {
		w.plant(c, p.raw)
		before := as(op, c)
		before.Decision.Receipt = w.receipt(l)
		w.one(before)
		w.hammer(l, p)
	}
	w.plant(c, p.raw)
	w.hammer(l, p)
	w.sleep(10 * l.Window())
	d := w.take(l, 10)
	if !d.Allowed {
		w.errorf("%v over %.60q (%s) at %d: got %s ten windows later, want the full limit",
			l, p.raw, p.why, at, show(d))
		return
	}
	if p.expires(l) {
		return
	}
	// Earlier checks may have made the key live for long.
	w.expires(c, d, injected, algorithms.Decision{ResetAfter: century})
}

// receipt returns the receipt of a take at the present instant, under a limit that no test exhausts.
func (w *world) receipt(l algorithms.Limit) algorithms.Receipt {
	w.Helper()
	return w.one(w.on("elsewhere", algorithmOf(l).of(10_000, time.Minute), 1)).Receipt
}

// hammer takes units until it is denied, and wants no more than the limit admitted.
func (w *world) hammer(l algorithms.Limit, p planted) {
	w.Helper()
	var admitted int64
	var d algorithms.Decision
	costs := []int64{4, 4, 2, 2, 1, 1} // leave nothing of ten
	for i := 0; i < len(costs); i++ {
		cost := costs[i]
		if i == len(costs)-1 && d.Allowed && len(costs) < 20 {
			costs = append(costs, 1) // the lie admitted fewer units so far
		}
		if d = w.take(l, cost); d.Allowed {
			if admitted == 0 { // later charges find a state that the first one wrote
				w.lives(l, p)
			}
			admitted += cost
		}
		if d.Remaining < 0 || d.Remaining > l.Burst() {
			w.errorf("%v over %.60q (%s): got %s", l, p.raw, p.why, show(d))
		}
	}
	if admitted > 0 {
		w.lives(l, p)
	}
	if admitted > l.Burst() || d.Allowed {
		w.errorf("%v over %.60q (%s): got %d admitted at once, want at most %d", l, p.raw, p.why, admitted, l.Burst())
	}
	// Lists and sets may hold instants that no limiter wrote, and that no limiter reads before they are the oldest.
	if longest := bound(l); d.RetryAfter > longest && algorithmOf(l).storage == texts {
		w.errorf("%v over %.60q (%s): got %s, want a wait of at most %v", l, p.raw, p.why, show(d), longest)
	}
}

// lives wants a key that expires.
func (w *world) lives(l algorithms.Limit, p planted) {
	w.Helper()
	if p.expires(l) {
		return
	}
	if w.s.Store.TTL(w, w.on("", l, 1)) <= 0 {
		w.errorf("%v over %.60q (%s): got a key that does not expire after a charge", l, p.raw, p.why)
	}
}

// refuses plants another kind of key, and wants it left alone.
func (w *world) refuses(l algorithms.Limit, kind string) {
	w.Helper()
	c, good := w.on("", l, 1), w.on("good", l, 2)
	const raw = "1763729430000000007"
	w.s.Store.Plant(w, c, kind, raw)
	for _, op := range append(takes[:2:2], settlements...) {
		bad := c
		bad.Op, bad.Decision.Receipt = op, w.receipt(l)
		beside := good
		if op >= algorithms.Return {
			beside.Op = algorithms.Force
		}
		for _, call := range [][]algorithms.Check{{bad}, {beside, bad}, {bad, beside}} {
			asked := text(call)
			err := w.limiter.Allow(w.Context(), call)
			if err == nil || errors.Is(err, algorithms.ErrInvalid) {
				w.errorf("%s over a %s: got error %v, want one that is not ErrInvalid", asked, kind, err)
			}
			w.full(good)
			if got, text := w.s.Store.Kind(w, c), w.s.Store.Stored(w, c); got != kind || text != raw {
				w.errorf("%s over a %s: got a %s, %q, want it left alone", asked, kind, got, text)
			}
		}
	}
	if got := w.s.Store.TTL(w, c); got >= 0 {
		w.errorf("%v over a %s: got a key that expires in %v, want it left alone", l, kind, got)
	}
}
