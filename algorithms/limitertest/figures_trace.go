// A language for worked examples: traces of steps, each with the figures and the stored text that it wants. The examples
// of each algorithm, which are in its file, are played alone, with trials beside every Take (which must change nothing),
// and with every figure probed.

package limitertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A trace is a sequence of calls on one key, of one check each, with the answers that the rule wants.
type trace struct {
	rule  string
	limit algorithms.Limit
	steps []step
}

// A step asks one check at an instant, in µs since the epoch of traces. Build it with take, force, grant or
// giveBack, and state the wanted answer with the methods.
type step struct {
	at    int64
	op    algorithms.Op
	cost  int64
	limit algorithms.Limit // zero: the trace's
	of    int              // of giveBack: the step that took

	allowed                           bool
	remaining, retry, reset, holdBack int64 // µs, or never
	text                              string
	texts                             bool // the stored text must be text
	unchanged                         bool // the stored text must be as before
}

// never stands for algorithms.Never in steps.
const never = -1

func take(at, cost int64) step  { return step{at: at, cost: cost} }
func force(at, cost int64) step { return step{at: at, cost: cost, op: algorithms.Force} }
func grant(at, cost int64) step { return step{at: at, cost: cost, op: algorithms.Grant} }

// giveBack returns cost units of the take in step of, the first being 0.
func giveBack(at, cost int64, of int) step {
	return step{at: at, cost: cost, op: algorithms.Return, of: of}
}

// yes wants an allowed step, and these figures after it.
func (s step) yes(remaining, reset int64) step {
	s.allowed, s.remaining, s.reset = true, remaining, reset
	return s
}

// no wants a denied step.
func (s step) no(remaining, retry, reset int64) step {
	s.remaining, s.retry, s.reset = remaining, retry, reset
	return s
}

// hold wants a Delay.
func (s step) hold(delay int64) step { s.holdBack = delay; return s }

// under sets another limit than the trace's.
func (s step) under(l algorithms.Limit) step { s.limit = l; return s }

// stored wants this text in the store; "" is no key.
func (s step) stored(text string) step { s.text, s.texts = text, true; return s }

// same wants the text in the store that was there before.
func (s step) same() step { s.unchanged = true; return s }

// A mode adds calls to the steps of a trace.
type mode int

const (
	alone   mode = iota // nothing: the steps are the only calls
	trials              // a Trial and a TrialInstead stand beside every Take
	audited             // every step is followed by probes of its figures
)

var modes = map[string]mode{"alone": alone, "with trials beside": trials, "audited": audited}

// play asks the steps of a trace, and compares the answers.
func (w *world) play(tr trace, m mode) {
	w.Helper()
	receipts := make([]algorithms.Receipt, len(tr.steps))
	var text string
	for i, s := range tr.steps {
		if s.limit == (algorithms.Limit{}) {
			s.limit = tr.limit
		}
		w.to(s.at)
		c := w.on("", s.limit, s.cost)
		c.Op = s.op
		if s.op == algorithms.Return {
			c.Decision.Receipt = receipts[s.of]
		}
		want := s.decision()
		want.Source = w.s.Source
		got := w.ask(c, m)
		receipts[i] = got.Receipt
		w.same(i, s, got, want)
		w.stores(i, s, c, &text)
		if m == audited {
			w.audit(c, got)
		}
	}
}

// ask asks one check in a mode.
func (w *world) ask(c algorithms.Check, m mode) algorithms.Decision {
	w.Helper()
	if m != trials || c.Op != algorithms.Take {
		return w.one(c)
	}
	// The first is often exhausted, the second rarely.
	tight := as(algorithms.Trial, w.on("tight", algorithms.FixedWindow(2, time.Minute), 1))
	same := as(algorithms.TrialInstead, w.on("", c.Limit, c.Cost))
	return w.allow(c, tight, same)[0].Decision
}

// decision returns the wanted answer of a step, except UnitAfter and the receipt.
func (s step) decision() algorithms.Decision {
	return algorithms.Decision{
		Allowed:    s.allowed,
		Remaining:  s.remaining,
		RetryAfter: duration(s.retry),
		ResetAfter: duration(s.reset),
		Delay:      duration(s.holdBack),
	}
}

func duration(v int64) time.Duration {
	if v == never {
		return algorithms.Never
	}
	return time.Duration(v) * µs
}

// same compares a decision with the wanted one.
func (w *world) same(i int, s step, got, want algorithms.Decision) {
	w.Helper()
	receipt := got.Receipt
	got.Receipt, got.UnitAfter = algorithms.Receipt{}, 0
	if got != want {
		w.errorf("step %d, %v %d at %d under %v:\n\tgot  %s\n\twant %s",
			i, s.op, s.cost, s.at, s.limit, show(got), show(want))
	}
	charged := s.op == algorithms.Take && s.allowed && s.cost > 0
	if s.op != algorithms.Return && (receipt.Units() != 0) != charged || charged && receipt.Units() != s.cost {
		w.errorf("step %d, %v %d at %d: got a receipt of %d units, want %d",
			i, s.op, s.cost, s.at, receipt.Units(), map[bool]int64{true: s.cost}[charged])
	}
}

// show formats the figures of a decision, in µs.
func show(d algorithms.Decision) string {
	var b strings.Builder
	b.WriteString(map[bool]string{true: "allowed", false: "denied"}[d.Allowed])
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"RetryAfter", d.RetryAfter}, {"ResetAfter", d.ResetAfter}, {"UnitAfter", d.UnitAfter}, {"Delay", d.Delay}} {
		b.WriteString(", " + f.name + " " + micros(f.d))
	}
	fmt.Fprintf(&b, ", Remaining %d, Receipt %d, %v", d.Remaining, d.Receipt.Units(), d.Source)
	return b.String()
}

// stores compares the text in the store with the wanted one, if it can be seen. The sign of a text only says how long
// its key lives.
func (w *world) stores(i int, s step, c algorithms.Check, text *string) {
	w.Helper()
	if w.s.Store == nil {
		return
	}
	before := *text
	*text = strings.TrimPrefix(w.s.Store.Stored(w, c), "-")
	switch want := s.text; {
	case s.unchanged && *text != before:
		w.errorf("step %d, %v %d at %d: got %q stored, want the same as before, %q",
			i, s.op, s.cost, s.at, *text, before)
	case s.texts && *text != want:
		w.errorf("step %d, %v %d at %d: got %q stored, want %q", i, s.op, s.cost, s.at, *text, want)
	}
}

func runVectors(t *testing.T, s Subject) {
	for _, a := range every() {
		for i, tr := range a.vectors {
			for m, mode := range modes {
				t.Run(fmt.Sprintf("%s %d %s", a.name(), i, m), func(t *testing.T) {
					t.Parallel()
					s.world(t, tr.rule).play(tr, mode)
				})
			}
		}
	}
}
