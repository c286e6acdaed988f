// The figures of remembered denials.

package shared

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/algorithms"
)

// A denial that was remembered before a smaller cost was admitted tells nothing
// any more: the admission replaces it.
func TestMixedCostsTellTheTruth(t *testing.T) {
	for _, limit := range everyAlgorithm(12, 2*time.Minute) {
		synctest.Test(t, func(t *testing.T) {
			d := newDenied()
			take(t, d, "usr=1", limit, 10)
			if got := take(t, d, "usr=1", limit, 3); got.Allowed || got.Remaining != 2 {
				t.Fatalf("%v: got %+v, want a denial with 2 remaining", limit, got)
			}
			if got := take(t, d, "usr=1", limit, 2); !got.Allowed {
				t.Fatalf("%v: got %+v, want the last two", limit, got)
			}
			for _, cost := range []int64{3, 3, 5, 12} {
				got, want := take(t, d, "usr=1", limit, cost), take(t, d.other, "usr=1", limit, cost)
				if got != want || got.Remaining != 0 || got.UnitAfter == 0 {
					t.Errorf("%v, cost %d: got %+v, the store says %+v", limit, cost, got, want)
				}
			}
		})
	}
}

// A remembered denial denies larger costs, too, with figures of their own. A log
// is asked, because it lists its units and does not know the wait of another cost.
func TestLargerCostsAreDeniedWithTheirOwnFigures(t *testing.T) {
	for _, limit := range bounded() {
		synctest.Test(t, func(t *testing.T) {
			d := newDenied()
			take(t, d, "usr=1", limit, 2)
			take(t, d, "usr=1", limit, 2) // denied: 1 remains
			hits, asked := d.hits(), d.store.asked
			costs := []int64{2, 3, 4, 9, 3, 2}
			for _, cost := range costs {
				time.Sleep(50 * time.Millisecond)
				got, want := take(t, d, "usr=1", limit, cost), take(t, d.other, "usr=1", limit, cost)
				if got != want || got.Allowed || (got.RetryAfter == algorithms.Never) != (cost > 3) {
					t.Errorf("%v, cost %d: got %+v, the store says %+v", limit, cost, got, want)
				}
			}
			n := uint64(len(costs))
			if hits = d.hits() - hits; limit.Step().Row.Counted && hits != n || !limit.Step().Row.Counted && hits != 1 {
				t.Errorf("%v: got %d hits of %d calls", limit, hits, n)
			}
			if got := d.store.asked - asked + int(hits); got != len(costs) {
				t.Errorf("%v: %d calls were answered by the store or by memory, want %d", limit, got, len(costs))
			}
			if got := take(t, d, "usr=1", limit, 1); !got.Allowed {
				t.Errorf("%v: a smaller cost: got %+v, want it admitted", limit, got)
			}
		})
	}
}

// The store's latest answer for a key replaces a denial: another denial takes its place,
// an answer that shows room drops it, and an answer that shows none renews it.
func TestLatestAnswerCounts(t *testing.T) {
	limit := algorithms.TokenBucket(10, 1_000*time.Second)
	wide := limit.WithBurst(20)
	exact := func(cost int64) algorithms.Check {
		c := checkOf("usr=1", limit, cost)
		c.Exact = true
		return c
	}
	tests := map[string]struct {
		between algorithms.Check
		again   int64 // of limit
		hit     bool  // by the denial that is then remembered
	}{
		"none":                            {checkOf("usr=2", limit, 1), 5, true},
		"a smaller cost, admitted":        {checkOf("usr=1", limit, 1), 5, true},
		"a smaller cost, denied":          {checkOf("usr=1", limit, 4), 4, true},
		"the cost again, exact":           {exact(5), 5, true},
		"a larger cost, exact":            {exact(7), 5, true},
		"nothing, exact":                  {exact(0), 5, true},
		"another limit, admitted":         {checkOf("usr=1", wide, 1), 5, false},
		"another limit, denied":           {checkOf("usr=1", wide, 15), 5, false},
		"another policy":                  {algorithms.Check{Policy: "other", Key: "usr=1", Limit: limit, Cost: 1}, 5, true},
		"a trial of another policy's key": {algorithms.Check{Policy: "other", Key: "usr=1", Limit: limit, Cost: 1, Op: algorithms.Trial}, 5, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDenied()
				take(t, d, "usr=1", limit, 7)
				if got := take(t, d, "usr=1", limit, 5); got.Allowed {
					t.Fatalf("got %+v, want a denial", got)
				}
				if err := d.Allow(t.Context(), []algorithms.Check{tt.between}); err != nil {
					t.Fatal(err)
				}
				hits := d.hits()
				got, want := take(t, d, "usr=1", limit, tt.again), take(t, d.other, "usr=1", limit, tt.again)
				if got != want || (d.hits() > hits) != tt.hit {
					t.Errorf("got %+v and %d hits, the store says %+v; want a hit: %v", got, d.hits()-hits, want, tt.hit)
				}
			})
		})
	}
}

// A takeAfter is one take of a random sequence.
type takeAfter struct {
	after time.Duration
	cost  int64
	exact bool
}

// As long as no other instance takes, every answer is the store's own, to the
// last figure, whatever the costs. Remaining of a log may be too low for a second.
func TestOneInstanceTellsTheTruth(t *testing.T) {
	t.Parallel()
	asks := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) takeAfter {
		return takeAfter{
			time.Duration(rapid.SampledFrom([]int64{0, 1, 999, 20_000, 999_999, 1_000_000}).Draw(r, "after")) * time.Microsecond,
			rapid.Int64Range(0, 6).Draw(r, "cost"),
			rapid.IntRange(0, 9).Draw(r, "exact") == 0,
		}
	}), 1, 60)
	twice := []takeAfter{{cost: 5}, {cost: 5}, {cost: 5}} // at least the second is denied, and the third meets its denial
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(7, 3*time.Second).WithBurst(5), algorithms.LeakyBucket(7, 3*time.Second).WithBurst(5),
		algorithms.SlidingWindowCounter(5, 2*time.Second), algorithms.SlidingWindowLog(5, 2*time.Second),
		algorithms.FixedWindow(5, 2*time.Second), algorithms.PerDay(5, nil),
	} {
		var hits uint64
		rapid.Check(t, func(r *rapid.T) {
			var wrong string
			plan := append(asks.Draw(r, "asks"), twice...)
			synctest.Test(t, func(t *testing.T) {
				d := newDenied()
				twin := over(newStateStore())
				for i, a := range plan {
					time.Sleep(a.after)
					c := checkOf("usr=1", limit, a.cost)
					c.Exact = a.exact
					got, want := []algorithms.Check{c}, []algorithms.Check{c}
					if err := d.Allow(context.Background(), got); err != nil {
						t.Fatal(err)
					}
					if err := twin.Allow(context.Background(), want); err != nil {
						t.Fatal(err)
					}
					g, w := &got[0].Decision, &want[0].Decision
					if !limit.Step().Row.Counted && !g.Allowed && g.Remaining <= w.Remaining {
						g.Remaining = w.Remaining
					}
					if *g != *w && wrong == "" {
						wrong = fmt.Sprintf("%v, call %d: got %+v, want %+v", limit, i, *g, *w)
					}
				}
				hits += d.hits()
			})
			if wrong != "" {
				r.Fatal(wrong)
			}
		})
		if hits == 0 {
			t.Errorf("%v: no denial was remembered: nothing was tried", limit)
		}
	}
}

// slow is a layer that decides at once or at the end, and answers in between.
type slow struct {
	layer
	before, after time.Duration // the decision
}

func (s slow) allow(ctx context.Context, c *call) error {
	time.Sleep(s.before)
	err := s.layer.allow(ctx, c)
	time.Sleep(s.after)
	return err
}

// deniedBy returns a limiter whose store takes its time.
func deniedBy(s slow) denied {
	d := newDenied()
	s.layer = d.store.layer
	d.store.layer = s
	return d
}

// However long the store's answer takes, the RetryAfter of a remembered denial
// is honest: at that instant the cost is admitted. With an answer at once it is
// exact: one microsecond before, the cost is denied.
func TestRememberedWaitsAreHonest(t *testing.T) {
	const way = 40 * time.Millisecond
	for _, s := range []slow{{}, {after: way}, {before: way}, {before: way, after: way}} {
		for _, limit := range bounded() {
			for _, cost := range []int64{1, 2, 3} {
				synctest.Test(t, func(t *testing.T) {
					d := deniedBy(s)
					for take(t, d.other, "usr=1", limit, 1).Allowed {
					}
					take(t, d, "usr=1", limit, cost)
					time.Sleep(7 * time.Millisecond)
					hits := d.hits()
					got := take(t, d, "usr=1", limit, cost)
					if got.Allowed || d.hits() != hits+1 {
						t.Fatalf("%v: got %+v, want a remembered denial", limit, got)
					}
					if s == (slow{}) {
						time.Sleep(got.RetryAfter - time.Microsecond)
						if early := take(t, d.other, "usr=1", limit, cost); early.Allowed {
							t.Errorf("%v, cost %d: admitted one µs before RetryAfter", limit, cost)
						}
						time.Sleep(time.Microsecond)
					} else {
						time.Sleep(got.RetryAfter)
					}
					if late := take(t, d.other, "usr=1", limit, cost); !late.Allowed {
						t.Errorf("%v, cost %d, %+v: got %+v at RetryAfter, want it admitted", limit, cost, s, late)
					}
				})
			}
		}
	}
}

// A denial holds for its RetryAfter from the question on, because the store may
// have decided at that instant.
func TestDenialsExpireFromTheQuestionOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deniedBy(slow{after: 100 * time.Millisecond})
		limit := algorithms.TokenBucket(1, 500*time.Millisecond)
		take(t, d, "usr=1", limit, 1)
		asked := time.Now()
		first := take(t, d, "usr=1", limit, 1)
		time.Sleep(time.Until(asked.Add(first.RetryAfter)) - time.Microsecond)
		if got := take(t, d, "usr=1", limit, 1); got.Allowed || d.hits() != 1 {
			t.Errorf("a µs before RetryAfter: got %+v and %d hits, want a denial from memory", got, d.hits())
		}
		time.Sleep(time.Microsecond)
		if got := take(t, d, "usr=1", limit, 1); !got.Allowed {
			t.Errorf("at RetryAfter: got %+v, want it admitted", got)
		}
	})
}
