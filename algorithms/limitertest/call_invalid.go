// Mistakes of the caller are errors that wrap ErrInvalid, and charge nothing.

package limitertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func runInvalid(t *testing.T, s Subject) {
	for _, tt := range mistakes {
		const text = "a call with one mistake in it is an error, and charges none of its checks: "
		s.run(t, []rule{{text + tt.name, every, func(w *world, l algorithms.Limit) {
			bad := w.on("bad", l, 1)
			tt.make(&bad)
			w.mistake(bad)
		}}})
	}
	for _, tt := range badLimits() {
		const text = "a limit that is not supported is an error whatever is asked under it: "
		s.run(t, []rule{{text + tt.name, nil, func(w *world, _ algorithms.Limit) {
			for _, l := range tt.limits {
				for op := algorithms.Take; op <= algorithms.Renew; op++ {
					bad := w.on("bad", l, 1)
					bad.Op = op
					w.invalid(bad)
				}
				w.fresh().mistake(w.on("bad", l, 1))
			}
		}}})
	}
	s.run(t, errorRules)
}

// mistake wants that a bad check makes its calls invalid, and that good ones beside it are not charged.
func (w *world) mistake(bad algorithms.Check) {
	w.Helper()
	// The mistake stands alone, first, in the middle, last, and among settlements.
	w.invalid(bad)
	before := the("token-bucket").ten()
	for _, l := range ten() {
		a, b := w.on("a", l, 2), w.on("b", before, 2)
		before = l
		w.invalid(a, bad, b)
		w.invalid(bad, a, b)
		w.invalid(a, b, bad)
		w.invalid(as(algorithms.Force, a), bad)
		w.full(a)
		w.full(b)
	}
}

var mistakes = []struct {
	name string
	make func(c *algorithms.Check) // makes the mistake
}{
	{"zero limit", func(c *algorithms.Check) { c.Limit = algorithms.Limit{} }},
	{"empty key", func(c *algorithms.Check) { c.Key = "" }},
	{"negative cost", func(c *algorithms.Check) { c.Cost = -1 }},
	{"most negative cost", func(c *algorithms.Check) { c.Cost = -1 << 63 }},
	{"negative cost to force", func(c *algorithms.Check) { c.Cost, c.Op = -1, algorithms.Force }},
	{"negative cost to grant", func(c *algorithms.Check) { c.Cost, c.Op = -1, algorithms.Grant }},
	{"negative cost to try", func(c *algorithms.Check) { c.Cost, c.Op = -1, algorithms.Trial }},
	{"unknown op 8", func(c *algorithms.Check) { c.Op = algorithms.Renew + 1 }},
	{"unknown op 255", func(c *algorithms.Check) { c.Op = 255 }},
	{"no policy", func(c *algorithms.Check) { c.Policy = "" }},
	{"policy of 65 letters", func(c *algorithms.Check) { c.Policy = strings.Repeat("a", 65) }},
	{"policy beginning with a digit", func(c *algorithms.Check) { c.Policy = "1a" }},
	{"policy with a colon", func(c *algorithms.Check) { c.Policy = "a:tb" }},
	{"policy with a brace", func(c *algorithms.Check) { c.Policy = "a{b}" }},
	{"policy with a space", func(c *algorithms.Check) { c.Policy = "a b" }},
	{"policy with a bar", func(c *algorithms.Check) { c.Policy = "a|b" }},
	{"policy not in ASCII", func(c *algorithms.Check) { c.Policy = "größe" }},
	{"policy with a NUL", func(c *algorithms.Check) { c.Policy = "a\x00" }},
	{"policy beginning with ~", func(c *algorithms.Check) { c.Policy = "~candidate" }},
}

// A badLimit is limits with one mistake.
type badLimit struct {
	name   string
	limits []algorithms.Limit
}

func badLimits() []badLimit {
	var beyond, burst []algorithms.Limit
	for _, a := range every() {
		beyond = append(beyond, a.of(a.most+1, time.Hour))
	}
	for _, l := range limits(windowed(), 5, time.Second) {
		burst = append(burst, l.WithBurst(1), l.WithBurst(4), l.WithBurst(6), l.WithBurst(1_000_000))
	}
	return []badLimit{
		{"no requests", limits(every(), 0, time.Second)},
		{"negative requests", limits(every(), -1, time.Second)},
		{"too many requests", limits(every(), 1_000_000_000_001, time.Second)},
		{"more requests than the algorithm takes", beyond},
		{"no window", limits(timed(), 1, 0)},
		{"negative window", limits(timed(), 1, -time.Second)},
		{"window of 1.5 µs", limits(timed(), 1, 1500)},
		{"window below 1 µs", limits(timed(), 1, 999)},
		{"window too long", limits(timed(), 1, 1<<45*µs)},
		{"burst of a window", burst},
		{"burst of no units", bursts(5, time.Second, 0)},
		{"negative burst", bursts(5, time.Second, -1)},
		{"burst too large", bursts(5, time.Second, 1_000_000_001)},
		{"a zone without a name", []algorithms.Limit{algorithms.PerDay(1, time.FixedZone("", 3600)), algorithms.PerMonth(1, time.Local)}},
		// A bucket is exact while r·(2·burst + 1) < 2^53, with the rate r/w in lowest terms. Each of these is just too
		// large.
		{"not exact, 67 108 864", bursts(67_108_864, 1_000_003*µs, 67_108_864)},
		{"not exact, burst 4 503 600", bursts(1_000_000_000, 1_000_003*µs, 4_503_600)},
	}
}

// valid returns limits just inside of the bounds.
func valid() []algorithms.Limit {
	valid := slices.Concat(
		bursts(67_108_863, 1_000_003*µs, 67_108_863),
		bursts(1_000_000_000, 1_000_003*µs, 4_503_599),
		limits(every(), 1, 1<<45*µs-µs),
		limits(every(), 10_000, µs),
		bursts(1, 365*24*time.Hour, 1_000_000_000),
	)
	for _, a := range windowed() {
		valid = append(valid, a.of(a.most, µs), a.of(a.most, time.Second))
	}
	return valid
}

// bursts returns one limit of each bucket.
func bursts(requests int64, window time.Duration, burst int64) (all []algorithms.Limit) {
	for _, l := range limits(buckets(), requests, window) {
		all = append(all, l.WithBurst(burst))
	}
	return all
}

var errorRules = []rule{
	{"a call holds at most 1 000 checks, because all others wait while it is decided", nil, func(w *world, l algorithms.Limit) {
		checks := make([]algorithms.Check, 1_001)
		for i := range checks {
			checks[i] = w.on("many", l, 0)
		}
		w.invalid(checks...)
		w.allow(checks[:1_000]...)
	}},
	// Each must keep its promise: the burst fits, and waits end as predicted.
	{"limits just inside of the bounds are valid", nil, func(w *world, _ algorithms.Limit) {
		for _, l := range valid() {
			w := w.fresh()
			b := l.Burst()
			if d := w.take(l, b); !d.Allowed || d.Remaining != 0 || d.ResetAfter == 0 {
				w.errorf("%v: got %s, want the burst taken", l, show(d))
			}
			w.honest(w.on("", l, 1))
			w.honest(w.on("", l, b))
		}
	}},
	// One context was cancelled, the other has a deadline in the past.
	{"a context that has ended is an error, and nothing is charged", nil, func(w *world, _ algorithms.Limit) {
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		late, cancel := context.WithDeadline(w.Context(), time.Unix(1, 0))
		defer cancel()
		for ctx, want := range map[context.Context]error{ended: context.Canceled, late: context.DeadlineExceeded} {
			for _, l := range ten() {
				checks := []algorithms.Check{w.on("a", l, 3), w.on("b", l, 3)}
				if err := w.limiter.Allow(ctx, checks); !errors.Is(err, want) ||
					errors.Is(err, algorithms.ErrInvalid) {
					w.errorf("got error %v, want %v", err, want)
				}
				w.full(w.on("a", l, 0))
				w.full(w.on("b", l, 0))
			}
		}
	}},
	// From 1970 to 2252 all sums of instants and windows stay below 2^53.
	{"a clock outside of the years in which arithmetic is exact is an error, and nothing is charged", nil, func(w *world, _ algorithms.Limit) {
		for _, l := range ten() {
			for _, at := range []int64{0, -1, -1 << 60, lastInstant + 1, 1 << 60} {
				w.clock.set(at)
				checks := []algorithms.Check{w.on("", l, 3)}
				if err := w.limiter.Allow(w.Context(), checks); err == nil {
					w.errorf("%v at %d µs: got no error", l, at)
				}
				w.to(0)
				w.full(checks[0])
			}
		}
		for _, at := range []int64{lastInstant, 1} {
			w.clock.set(at)
			for _, l := range ten() {
				w := *w
				w.principal += fmt.Sprint("|", at)
				w.audit(w.on("", l, 0), w.take(l, 10))
			}
		}
	}},
	// Errors end up in logs.
	{"an error does not name the key, which may name a person", nil, func(w *world, l algorithms.Limit) {
		checks := []algorithms.Check{w.on("secret", l, -1)}
		if err := w.limiter.Allow(w.Context(), checks); err == nil || strings.Contains(err.Error(), "secret") {
			w.errorf("got %v, want an error without the key", err)
		}
	}},
}
