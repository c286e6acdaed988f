// A world: one limiter with a clock and keys of its own, and the helpers in which rules are written.

package limitertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// epoch is the instant, in µs, that traces begin at: 2025-11-21 12:50:30 UTC, half a minute into a minute.
	epoch = 1_763_729_430_000_000

	// year2000 is an instant, in µs, of 15 digits. Later ones have 16.
	year2000 = 946_684_800_000_000

	// lastInstant is the last instant, in µs, that a clock may show.
	lastInstant = 1<<53 - 1<<46

	// Times of traces are in µs.
	second = 1_000_000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	policy    = "conformance"
	candidate = policy + "~candidate"

	µs = time.Microsecond
)

// rows numbers worlds, so that no two share a key, however many tests share a store.
var rows atomic.Int64

// A world is one limiter with a clock and keys of its own, and the rule that is checked in it.
type world struct {
	testing.TB
	s         Subject
	rule      string
	clock     *clock
	limiter   algorithms.Limiter
	principal string // begins all keys of this world, so that they share a slot
	broken    *atomic.Bool
}

func (s Subject) world(tb testing.TB, rule string) *world {
	w := s.bare(tb, rule)
	now := w.clock.now
	if s.RealClock {
		w.clock.fixed, now = tb, nil
	}
	w.limiter = s.New(tb, now)
	if s.Claims != nil || s.RealClock {
		w.limiter = foreign{w, w.limiter}
	}
	return w
}

// A foreign limiter skips the rule that makes a call outside of the claims. With the real clock it rounds waits, because
// time passes between a rule's calls.
type foreign struct {
	w       *world
	limiter algorithms.Limiter
}

func (f foreign) Allow(ctx context.Context, checks []algorithms.Check) error {
	f.w.Helper()
	f.w.claimed(checks...)
	err := f.limiter.Allow(ctx, checks)
	for i := range checks {
		if d := &checks[i].Decision; f.w.s.RealClock {
			for _, wait := range []*time.Duration{&d.RetryAfter, &d.ResetAfter, &d.UnitAfter, &d.Delay} {
				*wait = wait.Round(time.Second)
			}
		}
	}
	return err
}

// claimed skips the rule if the subject does not claim to decide a call.
func (w *world) claimed(checks ...algorithms.Check) {
	w.Helper()
	if w.s.Claims != nil && !w.s.Claims(checks) {
		w.Skipf("not claimed: %s", text(checks))
	}
}

// bare returns a world without a limiter.
func (s Subject) bare(tb testing.TB, rule string) *world {
	w := &world{TB: tb, s: s, rule: rule, clock: new(clock), principal: fmt.Sprintf("row=%d", rows.Add(1)), broken: new(atomic.Bool)}
	w.clock.at.Store(epoch)
	if s.tally != nil {
		s.tally.count(tb)
	}
	if slices.Contains(s.Except, rule) {
		tb.Skip("not claimed: " + rule)
	}
	return w
}

// fresh returns the same world with other keys, at the epoch.
func (w *world) fresh() *world {
	f := *w
	f.principal = fmt.Sprintf("row=%d", rows.Add(1))
	f.clock.at.Store(epoch)
	return &f
}

// errorf reports that the rule does not hold. It prints the first difference only, because the others follow from it.
func (w *world) errorf(format string, args ...any) {
	w.Helper()
	if w.broken.Swap(true) {
		w.Fail()
		return
	}
	w.Errorf("%s\n\trule: %s", fmt.Sprintf(format, args...), w.rule)
}

// A clock stands still until it is set.
type clock struct {
	at    atomic.Int64
	fixed testing.TB // the test to skip before the clock moves; nil if it may move
}

func (c *clock) move() {
	if c.fixed != nil {
		c.fixed.Skip("needs a clock that tests can set")
	}
}

func (c *clock) now() time.Time        { return time.UnixMicro(c.at.Load()) }
func (c *clock) set(instant int64)     { c.move(); c.at.Store(instant) }
func (c *clock) add(d time.Duration)   { c.move(); c.at.Add(d.Microseconds()) }
func (c *clock) instant() int64        { return c.at.Load() }
func (w *world) to(at int64)           { w.clock.set(epoch + at) }
func (w *world) sleep(d time.Duration) { w.clock.add(d) }

// on returns a check on the world's key called name; "" is the principal itself.
func (w *world) on(name string, limit algorithms.Limit, cost int64) algorithms.Check {
	key := w.principal
	if name != "" {
		key += "|" + name
	}
	return algorithms.Check{Policy: policy, Key: key, Limit: limit, Cost: cost}
}

// as returns a check with another op.
func as(op algorithms.Op, c algorithms.Check) algorithms.Check {
	c.Op = op
	if op == algorithms.Trial || op == algorithms.TrialInstead {
		c.Policy = candidate
	}
	return c
}

// allow asks about checks in one call, and returns them with their answers.
func (w *world) allow(checks ...algorithms.Check) []algorithms.Check {
	w.Helper()
	if err := w.limiter.Allow(w.Context(), checks); err != nil {
		w.Fatalf("%s: got error %v, want none\n\trule: %s", text(checks), err, w.rule)
	}
	return checks
}

// one is allow for one check.
func (w *world) one(c algorithms.Check) algorithms.Decision {
	w.Helper()
	return w.allow(c)[0].Decision
}

// take takes cost from the world's own key.
func (w *world) take(limit algorithms.Limit, cost int64) algorithms.Decision {
	w.Helper()
	return w.one(w.on("", limit, cost))
}

// peek returns the figures of the state under a check's key.
func (w *world) peek(c algorithms.Check) figures {
	w.Helper()
	return figuresOf(w.one(algorithms.Check{Policy: c.Policy, Key: c.Key, Limit: c.Limit}))
}

// probe returns the answer that a Take would get. It charges nothing, because its call holds a check that never fits.
func (w *world) probe(c algorithms.Check) algorithms.Decision {
	w.Helper()
	c.Op = algorithms.Take
	checks := w.allow(c, w.never())
	if algorithms.Allowed(checks) {
		w.Fatalf("a cost of 2 was admitted at burst 1\n\trule: %s", w.rule)
	}
	return checks[0].Decision
}

// never returns a Take that does not fit.
func (w *world) never() algorithms.Check {
	return w.on("never", algorithms.TokenBucket(1, time.Hour), 2)
}

// invalid wants that a call is the caller's mistake.
func (w *world) invalid(checks ...algorithms.Check) {
	w.Helper()
	asked := text(checks)
	err := w.limiter.Allow(w.Context(), checks)
	if !errors.Is(err, algorithms.ErrInvalid) {
		w.errorf("%s: got error %v, want one that wraps ErrInvalid", asked, err)
	}
}

// figures are the part of a decision that depends on the state only.
type figures struct {
	Remaining             int64
	ResetAfter, UnitAfter time.Duration
}

func figuresOf(d algorithms.Decision) figures {
	return figures{d.Remaining, d.ResetAfter, d.UnitAfter}
}

// full wants that nothing is in use under a check's key.
func (w *world) full(c algorithms.Check) {
	w.Helper()
	if got, want := w.peek(c), (figures{Remaining: c.Limit.Burst()}); got != want {
		w.errorf("%v of %q: got %+v, want the full limit, %+v", c.Limit, c.Key, got, want)
	}
}

// remaining wants that much left under a check's key.
func (w *world) remaining(c algorithms.Check, want int64) {
	w.Helper()
	if got := w.peek(c).Remaining; got != want {
		w.errorf("%v of %q: got %d remaining, want %d", c.Limit, c.Key, got, want)
	}
}

// wait returns the RetryAfter of a call: the longest of its takes. The second take of a pair speaks for both.
func wait(checks []algorithms.Check) time.Duration {
	var longest time.Duration
	for i := range checks {
		if checks[i].Op <= algorithms.TakeElse && !leads(checks, i) {
			longest = max(longest, checks[i].Decision.RetryAfter)
		}
	}
	return longest
}

// leads reports whether a check is the first take of a pair.
func leads(checks []algorithms.Check, i int) bool {
	return i+1 < len(checks) && (checks[i+1].Op == algorithms.TakeReserved || checks[i+1].Op == algorithms.TakeElse)
}

// text shows a call.
func text(checks []algorithms.Check) string {
	s := "["
	for i, c := range checks {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%v %d of %.40q %s under %v", c.Op, c.Cost, c.Key, c.Policy, c.Limit)
	}
	return s + "]"
}
