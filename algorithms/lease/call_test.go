// Which calls leases answer, and calls that leases answer in part.

package lease

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// The wrapped limiter answers all calls that leases cannot answer, whatever is on
// lease.
func TestLeasesLetPass(t *testing.T) {
	base := checkOf("usr=1", algorithms.FixedWindow(2_000, 24*time.Hour), 1)
	with := func(change func(c *algorithms.Check)) algorithms.Check {
		c := base
		change(&c)
		return c
	}
	other := with(func(c *algorithms.Check) { c.Key = "usr=2" })
	var nine []algorithms.Check
	for i := range 8 {
		nine = append(nine, with(func(c *algorithms.Check) { c.Key = "usr=9" + strconv.Itoa(i) }))
	}
	tests := []struct {
		name string
		call []algorithms.Check
		pass int // checks that are asked below
	}{
		{"a take", []algorithms.Check{base}, 0},
		{"all that is left", []algorithms.Check{with(func(c *algorithms.Check) { c.Cost = 25 })}, 0},
		{"more than is left", []algorithms.Check{with(func(c *algorithms.Check) { c.Cost = 26 })}, 1},
		{"exact", []algorithms.Check{with(func(c *algorithms.Check) { c.Exact = true })}, 1},
		{"a cost of nothing", []algorithms.Check{with(func(c *algorithms.Check) { c.Cost = 0 })}, 1},
		{"another key", []algorithms.Check{other}, 1},
		{"another policy", []algorithms.Check{with(func(c *algorithms.Check) { c.Policy = "other" })}, 1},
		{"another algorithm", []algorithms.Check{with(func(c *algorithms.Check) { c.Limit = algorithms.TokenBucket(2_000, 24*time.Hour) })}, 1},
		{"a trial beside", []algorithms.Check{base, with(func(c *algorithms.Check) { c.Op, c.Policy = algorithms.Trial, "default~candidate" })}, 2},
		{"a candidate", []algorithms.Check{base, with(func(c *algorithms.Check) { c.Op, c.Policy = algorithms.TrialInstead, "default~candidate" })}, 2},
		{"the key twice", []algorithms.Check{base, base}, 2},
		{"with another key", []algorithms.Check{base, other}, 1},
		{"eight checks", append(slices.Clone(nine[:7]), base), 7},
		{"nine checks", append(nine, base), 9},
		{"a return", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Return })}, 1},
		{"a force", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Force })}, 1},
		{"a grant", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Grant })}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeased(t, Options{})
				l.warm(t, "usr=1", base.Limit)
				l.fake.Drain()
				l.allow(t, tt.call...)
				if asked := l.fake.Drain(); len(asked) < tt.pass || len(asked) > tt.pass && asked[tt.pass].Cost < 25 {
					t.Errorf("got %+v below, want %d checks of the call", asked, tt.pass)
				}
				for _, c := range tt.call {
					if !c.Decision.Allowed || c.Decision.Source != algorithms.Shared {
						t.Errorf("got %+v", c.Decision)
					}
				}
			})
		})
	}
}

// An invalid check gets the wrapped limiter's error, also beside a take that is on
// lease. It charges nothing, and ends no lease.
func TestInvalidChecksPass(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	for name, change := range map[string]func(c *algorithms.Check){
		"no limit":        func(c *algorithms.Check) { c.Limit = algorithms.Limit{} },
		"an invalid one":  func(c *algorithms.Check) { c.Limit = algorithms.FixedWindow(0, time.Hour) },
		"another, too":    func(c *algorithms.Check) { c.Limit = limit.WithBurst(3) },
		"a negative cost": func(c *algorithms.Check) { c.Cost = -1 },
		"no key":          func(c *algorithms.Check) { c.Key = "" },
		"no policy":       func(c *algorithms.Check) { c.Policy = "" },
		"an unknown op":   func(c *algorithms.Check) { c.Op = 99 },
		"a bad reset":     func(c *algorithms.Check) { c.Op, c.Limit = algorithms.Reset, algorithms.Limit{} },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
			l.warm(t, "usr=1", limit)
			for _, leased := range []string{"usr=1", "usr=2"} {
				bad := checkOf(leased, limit, 1)
				change(&bad)
				for _, call := range [][]algorithms.Check{{bad}, {checkOf("usr=1", limit, 1), bad}, {bad, bad}} {
					want := l.fake.Memory.Allow(t.Context(), slices.Clone(call))
					got := l.Allow(t.Context(), call)
					if !errors.Is(got, algorithms.ErrInvalid) || got.Error() != want.Error() {
						t.Errorf("%s: got %v, want %v", name, got, want)
					}
				}
			}
			if err := l.Allow(t.Context(), nil); err != nil {
				t.Errorf("got %v for a call of no checks", err)
			}
			if got, want := l.stats(), (leaseStats{Keys: 1, Units: 25, Blocks: 1, Leased: 25}); got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		})
	}
}

func TestLeasesHeedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newLeased(t, Options{})
		l.warm(t, "usr=1", limit)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := algorithms.Allow(ctx, l, "usr=1", limit); !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v, %v after the context ended", d, err)
		}
	})
}

// partTest is a call of two checks on lease, and perhaps a third between them.
type partTest struct {
	name    string
	third   []algorithms.Check // at most one
	err     error
	during  func(l leased) // while the third is asked for
	charged bool
}

func TestCallsOfSeveralLeasesAreAllOrNothing(t *testing.T) {
	limit, few := algorithms.FixedWindow(2_000, 24*time.Hour), algorithms.FixedWindow(1, 24*time.Hour)
	for _, tt := range []partTest{
		{name: "both on lease", charged: true},
		{name: "and one that is not", third: []algorithms.Check{checkOf("usr=3", limit, 2)}, charged: true},
		{name: "and one that is denied", third: []algorithms.Check{checkOf("usr=3", few, 2)}},
		{name: "and nobody", third: []algorithms.Check{checkOf("usr=3", algorithms.Nobody(), 2)}},
		{name: "and an error", third: []algorithms.Check{checkOf("usr=3", limit, 2)}, err: errDown},
		{name: "and one that is denied after the leases end", third: []algorithms.Check{checkOf("usr=3", few, 2)},
			during: func(l leased) { _ = l.Close() }},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
			l.warm(t, "usr=1", limit)
			l.warm(t, "usr=2", limit)
			tt.ask(t, l, limit)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			want := int64(2_000 - 50)
			if tt.charged {
				want -= 2
			}
			for _, key := range []string{"usr=1", "usr=2"} {
				if got := l.left(t, key, limit); got != want {
					t.Errorf("%s: %s: got %d left, want %d", tt.name, key, got, want)
				}
			}
			if got := l.stats(); !got.accounted() {
				t.Errorf("%s: got %+v", tt.name, got)
			}
		})
	}
}

// ask makes the call, and checks its decisions.
func (tt *partTest) ask(t *testing.T, l leased, limit algorithms.Limit) {
	call := []algorithms.Check{checkOf("usr=1", limit, 2), checkOf("usr=2", limit, 2)}
	l.fake.Fail(tt.err)
	if tt.third != nil {
		call = []algorithms.Check{call[0], tt.third[0], call[1]}
		call[1].Decision.Allowed = true // callers use a slice again, with old decisions
		l.fake.After(func([]algorithms.Check) {
			l.fake.After(nil)
			if tt.during != nil {
				tt.during(l)
			}
		})
	}
	if err := l.Allow(t.Context(), call); !errors.Is(err, tt.err) {
		t.Fatalf("%s: got %v", tt.name, err)
	}
	l.fake.Fail(nil)
	if tt.err != nil {
		return
	}
	for i, c := range call {
		leased := tt.third == nil || i != 1
		d := c.Decision
		if leased && (!d.Allowed || (d.Receipt.Units() == 2) != tt.charged || tt.charged && d.Remaining != 23 || !tt.charged && d.Remaining != 25) {
			t.Errorf("%s: check %d: got %+v", tt.name, i, d)
		}
		if !leased && d.Allowed != tt.charged {
			t.Errorf("%s: the third: got %+v", tt.name, d)
		}
	}
}
