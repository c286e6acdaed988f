package algorithms_test

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// below is what leases take from: a Memory that looks like what all instances
// share, writes down what it was asked, and does as it is told.
type below struct {
	*algorithms.Memory
	before func(checks []algorithms.Check) error // runs before the decision
	after  func(checks []algorithms.Check)       // runs after the decision, before the answer

	forgetful bool // writes nothing down

	mu    sync.Mutex
	asked []algorithms.Check
}

func newBelow(t *testing.T) *below {
	return &below{Memory: newMemory(t, nil)}
}

func (b *below) Allow(ctx context.Context, checks []algorithms.Check) error {
	if !b.forgetful {
		b.mu.Lock()
		b.asked = append(b.asked, checks...)
		b.mu.Unlock()
	}
	if b.before != nil {
		if err := b.before(checks); err != nil {
			return err
		}
	}
	err := b.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	if b.after != nil {
		b.after(checks)
	}
	return err
}

// since returns what was asked since it was last called.
func (b *below) since() []algorithms.Check {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

// left returns what the store has left of the key.
func (b *below) left(t *testing.T, key string, limit algorithms.Limit) int64 {
	t.Helper()
	d, err := algorithms.Peek(t.Context(), b.Memory, key, limit)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// newLeased returns a stack with leases, in which two hot keys are hardly ever
// in one slot, where only one of them is leased.
func newLeased(t *testing.T, next algorithms.Limiter, o algorithms.LeaseOptions) *algorithms.Stack {
	o.MaxKeys = cmp.Or(o.MaxKeys, 5_000)
	s := algorithms.NewStackForTest(next, &algorithms.Options{Lease: &o, DenyCacheKeys: algorithms.DenyCacheOff})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// warm takes from a key until 25 units are on lease, the default's first block,
// and returns how many it has taken.
func warm(t *testing.T, s *algorithms.Stack, key string, limit algorithms.Limit) int64 {
	t.Helper()
	before := s.Stats().Lease.Units
	for range 50 {
		if d := take(t, s, key, limit); !d.Allowed {
			t.Fatalf("%v: got %+v while it becomes hot", limit, d)
		}
	}
	synctest.Wait()
	if got := s.Stats().Lease.Units - before; got != 25 {
		t.Fatalf("%v: got %d units on lease, want 25: what 500 per second take in 50 ms", limit, got)
	}
	return 50
}

func leasable() []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(2_000, 24*time.Hour),
		algorithms.SlidingWindowCounter(2_000, 24*time.Hour),
		algorithms.FixedWindow(2_000, 24*time.Hour),
		algorithms.PerDay(2_000, nil),
	}
}

// Fifty takes in an epoch make a key hot. From then on blocks answer.
func TestHotKeysAreLeased(t *testing.T) {
	for _, limit := range leasable() {
		synctest.Test(t, func(t *testing.T) {
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			warm(t, s, "usr=1", limit)
			first := store.since()[50]
			if first.Cost != 25 || !first.Exact || first.Fail != algorithms.FailClosed || first.Op != algorithms.Take {
				t.Errorf("%v: got %+v for a block", limit, first)
			}
			resets := store.left(t, "usr=1", limit)
			if resets != 2_000-50-25 {
				t.Errorf("%v: got %d left below, want all that was leased charged", limit, resets)
			}
			time.Sleep(3 * time.Millisecond)
			want, err := algorithms.Peek(t.Context(), store.Memory, "usr=1", limit)
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(12) {
				got := take(t, s, "usr=1", limit)
				if !got.Allowed || got.Source != algorithms.Shared || got.Remaining != 24-i || got.RetryAfter != 0 ||
					got.ResetAfter != want.ResetAfter || got.UnitAfter != 0 || got.Receipt.Units() != 1 {
					t.Errorf("%v: take %d of the lease: got %+v, want it to reset after %v", limit, i, got, want.ResetAfter)
				}
			}
			if asked := store.since(); len(asked) != 0 {
				t.Errorf("%v: got %d checks below, want none", limit, len(asked))
			}
			take(t, s, "usr=1", limit) // leaves less than a half
			synctest.Wait()
			stats := s.Stats().Lease
			want2 := algorithms.LeaseStats{Keys: 1, Units: 12 + 25, Blocks: 2, Leased: 50, Spent: 13}
			if stats != want2 {
				t.Errorf("%v: got %+v, want %+v", limit, stats, want2)
			}
			if got := take(t, s, "usr=1", limit); got.Remaining != 11+25 {
				t.Errorf("%v: got %d remaining, want what is left of both blocks", limit, got.Remaining)
			}
		})
	}
}

// A key that nobody asks for any more is not hot for long, and leaves its place to
// another, also where Hold and HotAt are small.
func TestKeysCoolDown(t *testing.T) {
	for _, o := range []algorithms.LeaseOptions{
		{HotAt: 10, Hold: 10 * time.Millisecond}, {HotAt: 10}, {HotAt: 50, Hold: 50 * time.Millisecond}, {Hold: 10 * time.Millisecond}, {},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newLeased(t, newBelow(t), o)
			for range 50 {
				take(t, s, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
			}
			if got := s.Stats().Lease.Keys; got != 1 {
				t.Fatalf("%+v: got %d hot keys, want the one that all ask for", o, got)
			}
			time.Sleep(10 * time.Second)
			if got := s.Stats().Lease.Keys; got != 0 {
				t.Errorf("%+v: got %d hot keys, though nobody has asked for 10 s", o, got)
			}
		})
	}
}

// A block is what the key asks for in half of Hold, within the share of the
// burst and an eighth of what is left, and none if that is too few takes.
func TestBlocksAreOfTheRightSize(t *testing.T) {
	tests := []struct {
		limit algorithms.Limit
		share int
		cost  int64
		want  int64 // after fifty takes
	}{
		{algorithms.FixedWindow(2_000, 24*time.Hour), 0, 1, 25},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 1, 20},
		{algorithms.TokenBucket(2_000, 24*time.Hour).WithBurst(200), 0, 1, 150 / 8},
		{algorithms.FixedWindow(100, 24*time.Hour), 0, 1, 50 / 8},
		{algorithms.FixedWindow(82, 24*time.Hour), 0, 1, 32 / 8},
		{algorithms.FixedWindow(81, 24*time.Hour), 0, 1, 0},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 0, 2, 50},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 5, 20},
		{algorithms.FixedWindow(2_000, 24*time.Hour), 1, 6, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			s := newLeased(t, newBelow(t), algorithms.LeaseOptions{Share: tt.share})
			check := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: tt.limit, Cost: tt.cost}
			ask := func(times int64) {
				for range times {
					if err := s.Allow(t.Context(), []algorithms.Check{check}); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
			}
			ask(50)
			if got := s.Stats().Lease.Units; got != tt.want {
				t.Errorf("%v, share %d, cost %d: got %d on lease, want %d", tt.limit, tt.share, tt.cost, got, tt.want)
			}
			ask(tt.want / tt.cost * 6 / 10)
			share := tt.limit.Burst() * int64(cmp.Or(tt.share, 10)) / 100
			if got := s.Stats().Lease.Units; got > share {
				t.Errorf("%v, share %d, cost %d: got %d on lease with the next block, want at most %d", tt.limit, tt.share, tt.cost, got, share)
			}
		})
	}
}

func TestColdKeysAreNotLeased(t *testing.T) {
	for _, others := range []int{0, 15} {
		synctest.Test(t, func(t *testing.T) {
			s := newLeased(t, newBelow(t), algorithms.LeaseOptions{MaxKeys: 1}) // 16 slots for all keys
			limit := algorithms.TokenBucket(1_000_000, time.Second)
			for range 10 { // epochs of 100 ms
				for i := range 49 {
					take(t, s, "usr=lukewarm", limit)
					for j := range others {
						take(t, s, "usr="+strconv.Itoa(15*i+j), limit)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := s.Stats().Lease; got != (algorithms.LeaseStats{}) {
				t.Errorf("got %+v, want nothing: no key had 500 takes per second", got)
			}
		})
	}
}

// Whatever else falls into its slot, or did, a key that is much hotter is found,
// and what it has is for no other.
func TestHotKeyAmongColdOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeased(t, newBelow(t), algorithms.LeaseOptions{MaxKeys: 1}) // 16 slots for all keys
		limit := algorithms.TokenBucket(1_000_000, time.Second)
		others := func() {
			for i := range 160 {
				take(t, s, "usr="+strconv.Itoa(i), limit)
			}
		}
		for i := range 49 * 16 {
			take(t, s, "usr="+strconv.Itoa(i/(1+i%5)), limit) // they leave votes in all slots
		}
		time.Sleep(100 * time.Millisecond)
		for range 50 {
			take(t, s, "usr=hot", limit)
		}
		synctest.Wait()
		if got := s.Stats().Lease; got.Keys != 1 || got.Units != 25 {
			t.Errorf("got %+v, want one hot key: its takes are the epoch's first", got)
		}
		others()
		take(t, s, "usr=hot", limit)
		if got := s.Stats().Lease; got.Keys != 1 || got.Spent != 1 {
			t.Errorf("got %+v, want one unit spent, by the hot key", got)
		}
		for range 400 {
			take(t, s, "usr=second", limit)
			take(t, s, "usr=third", limit)
		}
		if got := s.Stats().Lease; got.Keys != 1 {
			t.Errorf("got %d keys, want MaxKeys at most", got.Keys)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newLeased(t, newBelow(t), algorithms.LeaseOptions{MaxKeys: 1})
		limit := algorithms.TokenBucket(1_000_000, time.Second)
		for i := range 40 {
			take(t, s, "usr="+strconv.Itoa(i), limit) // they hold all slots
		}
		for range 100 {
			take(t, s, "usr=hot", limit)
		}
		if got := s.Stats().Lease; got.Keys != 1 {
			t.Errorf("got %+v, want one hot key: it outvotes others", got)
		}
	})
}

// What leases are not for is asked below, whatever is on lease.
func TestLeasesLetPass(t *testing.T) {
	base := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: algorithms.FixedWindow(2_000, 24*time.Hour), Cost: 1}
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
		{"nine checks", append(nine, base), 9},
		{"a return", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Return })}, 1},
		{"a force", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Force })}, 1},
		{"a grant", []algorithms.Check{with(func(c *algorithms.Check) { c.Op = algorithms.Grant })}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newBelow(t)
				s := newLeased(t, store, algorithms.LeaseOptions{})
				warm(t, s, "usr=1", base.Limit)
				store.since()
				if err := s.Allow(t.Context(), tt.call); err != nil {
					t.Fatal(err)
				}
				if asked := store.since(); len(asked) < tt.pass || len(asked) > tt.pass && asked[tt.pass].Cost < 25 {
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

func TestOtherAlgorithmsAndPoliciesAreNotLeased(t *testing.T) {
	limits := []algorithms.Limit{
		algorithms.LeakyBucket(10_000, time.Second), algorithms.SlidingWindowLog(10_000, time.Second),
		algorithms.TokenBucket(10_000, time.Second),
	}
	for _, limit := range limits {
		synctest.Test(t, func(t *testing.T) {
			s := newLeased(t, newBelow(t), algorithms.LeaseOptions{Policies: []string{"orders", "login"}})
			check := algorithms.Check{Policy: "login", Key: "usr=1", Limit: limit, Cost: 1}
			if limit.Algorithm() == limits[2].Algorithm() {
				check.Policy = "other"
			}
			for range 1_000 {
				if err := s.Allow(t.Context(), []algorithms.Check{check}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if got := s.Stats().Lease; got != (algorithms.LeaseStats{}) {
				t.Errorf("%v of policy %s: got %+v, want nothing leased", limit, check.Policy, got)
			}
		})
	}
}

func TestLeasesHeedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		s := newLeased(t, newBelow(t), algorithms.LeaseOptions{})
		warm(t, s, "usr=1", limit)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := algorithms.Allow(ctx, s, "usr=1", limit); !errors.Is(err, context.Canceled) {
			t.Errorf("got %+v, %v after the context ended", d, err)
		}
	})
}

func TestHugeKeysAreNotLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeased(t, newBelow(t), algorithms.LeaseOptions{MaxKeys: 1})
		for range 100 {
			take(t, s, strings.Repeat("x", 10_000), algorithms.FixedWindow(2_000, 24*time.Hour))
		}
		for i := range 100 {
			take(t, s, "usr="+strconv.Itoa(i), algorithms.FixedWindow(2_000, 24*time.Hour))
		}
		if got := s.Stats().Lease; got.Keys != 0 {
			t.Errorf("got %+v, want no key of 10 kB, nor one of its slot", got)
		}
	})
}

// What is left goes back when Hold has passed, and when it closes.
func TestLeasesGoBack(t *testing.T) {
	for _, limit := range leasable() {
		for name, end := range map[string]func(s *algorithms.Stack){
			"hold":  func(*algorithms.Stack) { time.Sleep(100 * time.Millisecond) },
			"close": func(s *algorithms.Stack) { _ = s.Close() },
		} {
			synctest.Test(t, func(t *testing.T) {
				store := newBelow(t)
				s := newLeased(t, store, algorithms.LeaseOptions{})
				taken := warm(t, s, "usr=1", limit)
				for range 5 {
					take(t, s, "usr=1", limit)
				}
				end(s)
				synctest.Wait()
				if got, want := store.left(t, "usr=1", limit), 2_000-taken-5; got != want {
					t.Errorf("%v after %s: got %d left, want %d: all but what was spent", limit, name, got, want)
				}
				want := algorithms.LeaseStats{Blocks: 1, Leased: 25, Spent: 5, Returned: 20}
				if got := s.Stats().Lease; got != want {
					t.Errorf("%v after %s: got %+v, want %+v", limit, name, got, want)
				}
				store.since()
				take(t, s, "usr=1", limit)
				if asked := store.since(); len(asked) != 1 {
					t.Errorf("%v after %s: got %d checks below, want the take", limit, name, len(asked))
				}
			})
		}
	}
}

// Close waits for a block that is under way, and gives it back, too.
func TestCloseWaitsForBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		store := newBelow(t)
		store.after = func(checks []algorithms.Check) {
			if checks[0].Cost == 25 && checks[0].Op == algorithms.Take {
				time.Sleep(50 * time.Millisecond)
			}
		}
		s := newLeased(t, store, algorithms.LeaseOptions{})
		for range 50 {
			take(t, s, "usr=1", limit)
		}
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := store.left(t, "usr=1", limit); got != 2_000-50 {
			t.Errorf("got %d left after Close, want %d", got, 2_000-50)
		}
	})
}

func TestCloseMayBeRepeatedAndEndsEverything(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	store := &below{Memory: algorithms.Must(algorithms.NewMemory(nil))}
	defer store.Close()
	s := algorithms.NewStackForTest(store, &algorithms.Options{Lease: &algorithms.LeaseOptions{}})
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				take(t, s, "usr=1", limit)
			}
		})
		wg.Go(func() {
			for s.Stats().Lease.Blocks == 0 {
				take(t, s, "usr=1", limit)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := s.Stats().Lease
	if got.Keys != 0 || got.Units != 0 || got.Blocks == 0 || got.Leased != got.Spent+got.Returned+got.Lost {
		t.Errorf("got %+v, want all that was leased spent or returned", got)
	}
}

// A block of a window is spent in that window only, by the store's clock, even
// if its answer was long under way.
func TestLeasesEndWithTheirWindow(t *testing.T) {
	for limit, turn := range map[algorithms.Limit]time.Duration{ // since midnight in UTC
		algorithms.FixedWindow(2_000, time.Second):          time.Second,
		algorithms.SlidingWindowCounter(2_000, time.Second): time.Second,
		algorithms.PerDay(2_000, location("Asia/Kolkata")):  18*time.Hour + 30*time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			blocks := 0
			store.before = func(checks []algorithms.Check) error {
				if c := &checks[0]; c.Op == algorithms.Take && c.Cost > 1 {
					if blocks++; blocks > 1 {
						return errDown // one is enough
					}
					time.Sleep(5 * time.Millisecond)
				}
				return nil
			}
			store.after = func(checks []algorithms.Check) {
				if checks[0].Cost == 25 && checks[0].Op == algorithms.Take {
					time.Sleep(5 * time.Millisecond)
				}
			}
			time.Sleep(turn - 30*time.Millisecond)
			for range 50 {
				take(t, s, "usr=1", limit)
			}
			time.Sleep(10*time.Millisecond + 1) // 20 ms are left, 15 of them since it was asked
			store.since()
			for range 5 {
				take(t, s, "usr=1", limit)
			}
			time.Sleep(14*time.Millisecond - 2)
			take(t, s, "usr=1", limit)
			if asked := store.since(); len(asked) != 0 {
				t.Errorf("%v in the window: got %d checks below, want none", limit, len(asked))
			}
			time.Sleep(time.Millisecond + 1)
			take(t, s, "usr=1", limit)
			if asked := store.since(); len(asked) == 0 {
				t.Errorf("%v: a unit was spent when the window may have ended", limit)
			}
			time.Sleep(100 * time.Millisecond)
			want := algorithms.LeaseStats{Blocks: 1, Leased: 25, Spent: 6, Lost: 19}
			if !limit.Algorithm().Aligned() { // they count on in the next window
				want.Lost, want.Returned = 0, 19
			}
			if got := s.Stats().Lease; got != want {
				t.Errorf("%v: got %+v, want %+v", limit, got, want)
			}
		})
	}
}

// A changed limit acts at once on this instance: what is left on the old lease
// goes back under the new one.
func TestLeaseOfAChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newBelow(t)
		s := newLeased(t, store, algorithms.LeaseOptions{})
		before, after := algorithms.FixedWindow(2_000, 24*time.Hour), algorithms.FixedWindow(60, 24*time.Hour)
		warm(t, s, "usr=1", before)
		if d := take(t, s, "usr=1", after); d.Allowed {
			t.Errorf("got %+v, want it denied: 75 of 60 are taken", d)
		}
		store.since()
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		if asked := store.since(); len(asked) != 1 || asked[0].Limit != after || asked[0].Cost != 25 {
			t.Errorf("got %+v below, want 25 returned under the new limit", asked)
		}
		if got := store.left(t, "usr=1", after); got != 10 {
			t.Errorf("got %d left, want 10: 50 of 60 are used", got)
		}
	})
}

// After a Reset nothing counts that was leased before it, also if it was still
// under way.
func TestLeaseOfAResetKey(t *testing.T) {
	for name, delay := range map[string]time.Duration{"on lease": 0, "under way": 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			limit := algorithms.FixedWindow(2_000, 24*time.Hour)
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			store.after = func(checks []algorithms.Check) {
				if checks[0].Cost == 25 {
					time.Sleep(delay)
				}
			}
			for range 50 {
				take(t, s, "usr=1", limit)
			}
			synctest.Wait()
			if err := algorithms.Forget(t.Context(), s, "usr=1", limit); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
			want := algorithms.LeaseStats{Blocks: 1, Leased: 25, Lost: 25}
			if got := s.Stats().Lease; got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
			if got := store.left(t, "usr=1", limit); got != 2_000 {
				t.Errorf("%s: got %d left, want all", name, got)
			}
		})
	}
}

// If there is no block to be had, takes pass, and it is not asked for again
// until Hold has passed.
func TestRefusedBlocks(t *testing.T) {
	limit := algorithms.FixedWindow(2_000, 24*time.Hour)
	pass := func([]algorithms.Check) error { return nil }
	tests := []struct {
		name   string
		before func(checks []algorithms.Check) error
		after  func(checks []algorithms.Check)
		tries  int64 // for a block, in 150 ms
	}{
		{"an error", func([]algorithms.Check) error { return errDown }, nil, 2},
		{"a denial", func(checks []algorithms.Check) error { checks[0].Cost = 2_001; return nil }, nil, 2},
		{"a local decision", pass, func(checks []algorithms.Check) { checks[0].Decision.Source = algorithms.Local }, 2},
		{"too late", func([]algorithms.Check) error { time.Sleep(80 * time.Millisecond); return nil }, nil, 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			var tries atomic.Int64
			ofBlock := func(checks []algorithms.Check) bool {
				return checks[0].Op == algorithms.Take && checks[0].Cost > 1
			}
			store.before = func(checks []algorithms.Check) error {
				if !ofBlock(checks) {
					return nil
				}
				tries.Add(1)
				return tt.before(checks)
			}
			store.after = func(checks []algorithms.Check) {
				if tt.after != nil && ofBlock(checks) {
					tt.after(checks)
				}
			}
			for range 149 + 50 { // the first 50 make it hot
				take(t, s, "usr=1", limit)
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			if got := s.Stats().Lease; tries.Load() != tt.tries || got.Spent != 0 {
				t.Errorf("%s: got %d tries and %+v, want %d tries, nothing spent", tt.name, tries.Load(), got, tt.tries)
			}
			time.Sleep(time.Second)
			if got := store.left(t, "usr=1", limit); got != 2_000-199 {
				t.Errorf("%s: got %d left, want %d", tt.name, got, 2_000-199)
			}
		})
	}
}

var errDown = errors.New("out of reach")

func TestCallsOfSeveralLeasesAreAllOrNothing(t *testing.T) {
	limit, few := algorithms.FixedWindow(2_000, 24*time.Hour), algorithms.FixedWindow(1, 24*time.Hour)
	check := func(key string, limit algorithms.Limit) algorithms.Check {
		return algorithms.Check{Policy: algorithms.DefaultPolicy, Key: key, Limit: limit, Cost: 2}
	}
	tests := []struct {
		name    string
		third   *algorithms.Check
		err     error
		during  func(s *algorithms.Stack) // while the third is asked for
		charged bool
	}{
		{name: "both on lease", charged: true},
		{name: "and one that is not", third: new(check("usr=3", limit)), charged: true},
		{name: "and one that is denied", third: new(check("usr=3", few))},
		{name: "and nobody", third: new(check("usr=3", algorithms.Nobody()))},
		{name: "and an error", third: new(check("usr=3", limit)), err: errDown},
		{name: "and one that is denied after the leases end", third: new(check("usr=3", few)),
			during: func(s *algorithms.Stack) { _ = s.Close() }},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			warm(t, s, "usr=1", limit)
			warm(t, s, "usr=2", limit)
			store.since()
			store.before = func([]algorithms.Check) error { return tt.err }
			call := []algorithms.Check{check("usr=1", limit), check("usr=2", limit)}
			if tt.third != nil {
				call = []algorithms.Check{call[0], *tt.third, call[1]}
				store.after = func([]algorithms.Check) {
					store.after = nil
					if tt.during != nil {
						tt.during(s)
					}
				}
			}
			if err := s.Allow(t.Context(), call); !errors.Is(err, tt.err) {
				t.Fatalf("%s: got %v", tt.name, err)
			}
			store.before = nil
			if tt.err == nil {
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
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			want := int64(2_000 - 50)
			if tt.charged {
				want -= 2
			}
			for _, key := range []string{"usr=1", "usr=2"} {
				if got := store.left(t, key, limit); got != want {
					t.Errorf("%s: %s: got %d left, want %d", tt.name, key, got, want)
				}
			}
			if got := s.Stats().Lease; got.Leased != got.Spent+got.Returned || got.Units != 0 {
				t.Errorf("%s: got %+v", tt.name, got)
			}
		})
	}
}

// A take from a lease is returned as any other, and never credits more.
func TestReturnsOfLeasedTakes(t *testing.T) {
	for _, limit := range leasable() {
		synctest.Test(t, func(t *testing.T) {
			store := newBelow(t)
			s := newLeased(t, store, algorithms.LeaseOptions{})
			warm(t, s, "usr=1", limit)
			call := []algorithms.Check{{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 10}}
			if err := s.Allow(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			left := store.left(t, "usr=1", limit)
			call[0].Op, call[0].Cost = algorithms.Return, 4
			for _, want := range []int64{4, 8, 10, 10} {
				if err := s.Allow(t.Context(), call); err != nil {
					t.Fatal(err)
				}
				if got := store.left(t, "usr=1", limit) - left; got != want {
					t.Errorf("%v: got %d credited, want %d", limit, got, want)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := store.left(t, "usr=1", limit); got != 2_000-50 {
				t.Errorf("%v: got %d left, want %d: all went back", limit, got, 2_000-50)
			}
		})
	}
}

// A denial that is remembered ends when units are leased, or go back.
func TestLeasesEndRememberedDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		store := newBelow(t)
		s := algorithms.NewStackForTest(store, &algorithms.Options{Lease: &algorithms.LeaseOptions{}})
		defer s.Close()
		warm(t, s, "usr=1", limit)
		all := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 1_950}
		denied := func() bool {
			call := []algorithms.Check{all}
			if err := s.Allow(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			return !algorithms.Allowed(call)
		}
		for range 2 {
			if !denied() {
				t.Error("admitted, though 25 units are on lease")
			}
		}
		if got := s.Stats().Denied; got != 1 {
			t.Errorf("got %d denials from memory, want the second", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if denied() {
			t.Errorf("denied, though what was on lease has come back")
		}
	})
}

// So does one that was remembered while units were under way.
func TestBlocksUnderWayEndRememberedDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		store := newBelow(t)
		store.after = func(checks []algorithms.Check) {
			if checks[0].Cost == 25 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		s := algorithms.NewStackForTest(store, &algorithms.Options{Lease: &algorithms.LeaseOptions{}})
		defer s.Close()
		for range 50 {
			take(t, s, "usr=1", limit)
		}
		synctest.Wait()
		rest := []algorithms.Check{{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 1_925}}
		if err := s.Allow(t.Context(), rest); err != nil || !algorithms.Allowed(rest) {
			t.Fatal(err, rest)
		}
		for range 2 {
			if d := take(t, s, "usr=1", limit); d.Allowed {
				t.Errorf("got %+v before the block is there", d)
			}
		}
		if got := s.Stats().Denied; got != 1 {
			t.Errorf("got %d denials from memory, want the second", got)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if d := take(t, s, "usr=1", limit); !d.Allowed {
			t.Errorf("got %+v, want a unit of the block", d)
		}
	})
}

// What a hot key has not spent by then goes back when Hold has passed.
func TestHotKeysGiveBackWhatIsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		s := newLeased(t, newBelow(t), algorithms.LeaseOptions{})
		warm(t, s, "usr=1", limit)
		for range 30 { // 300 per second, of which it was lent 25 for 75 ms
			time.Sleep(time.Second / 300)
			take(t, s, "usr=1", limit)
		}
		synctest.Wait()
		if got := s.Stats().Lease; got.Keys != 1 || got.Returned == 0 || got.Returned > 3 {
			t.Errorf("got %+v, want a hot key that gave back some of its first 25", got)
		}
	})
}

// Units that cannot go back are told of.
func TestLostReturnsAreObserved(t *testing.T) {
	for err, class := range map[error]algorithms.ErrorClass{errDown: algorithms.ErrorUnavailable, context.DeadlineExceeded: algorithms.ErrorTimeout} {
		testLostReturnsAreObserved(t, err, class)
	}
}

func testLostReturnsAreObserved(t *testing.T, lost error, class algorithms.ErrorClass) {
	synctest.Test(t, func(t *testing.T) {
		var events []algorithms.Event
		store := newBelow(t)
		o := &algorithms.Options{Lease: &algorithms.LeaseOptions{}, DenyCacheKeys: algorithms.DenyCacheOff}
		o.Observe = func(e algorithms.Event) { events = append(events, e) }
		s := algorithms.NewStackForTest(store, o)
		warm(t, s, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
		store.before = func([]algorithms.Check) error { return lost }
		for range 2 {
			if err := s.Close(); !errors.Is(err, lost) {
				t.Errorf("Close: got %v, want %v", err, lost)
			}
		}
		if len(events) != 1 || events[0].Kind != algorithms.EventReturnFailed || events[0].Policy != algorithms.DefaultPolicy ||
			!errors.Is(events[0].Err, lost) || events[0].Class != class || s.Stats().Lease.Lost != 25 {
			t.Errorf("got %+v and %+v, want %v, %v, and 25 units lost", events, s.Stats().Lease, lost, class)
		}
	})
}

func TestLeaseOptions(t *testing.T) {
	client := redistest.Start(t).Client()
	_, err := algorithms.NewShared(client, &algorithms.Options{DenyCacheKeys: -2, Lease: &algorithms.LeaseOptions{
		Policies: []string{"orders", "a b"}, Share: 51, Hold: time.Millisecond, HotAt: 9, MaxKeys: -1,
	}})
	for _, want := range []string{"DenyCacheKeys is -2", `"a b"`, "Share is 51", "Hold is 1ms", "HotAt is 9", "MaxKeys is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	before := goleak.IgnoreCurrent()
	o := &algorithms.Options{Lease: &algorithms.LeaseOptions{}}
	o.Redis.Now = time.Now
	for _, o := range []*algorithms.Options{nil, {}, o} {
		s, err := algorithms.NewShared(client, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	}
}

// What a take from a lease costs, and what leases add to one of a cold key.
func BenchmarkLease(b *testing.B) {
	memory := algorithms.Must(algorithms.NewMemory(nil))
	defer memory.Close()
	for _, bb := range []struct {
		name string
		next algorithms.Limiter
		keys int
	}{{"hot", &below{Memory: memory, forgetful: true}, 1}, {"cold", instantly{}, len(names)}} {
		b.Run(bb.name, func(b *testing.B) {
			s := algorithms.NewStackForTest(bb.next, &algorithms.Options{
				Lease: &algorithms.LeaseOptions{HotAt: 50_000}, DenyCacheKeys: algorithms.DenyCacheOff,
			})
			defer s.Close()
			checks := []algorithms.Check{{Policy: "orders", Limit: algorithms.TokenBucket(1_000_000_000, time.Second), Cost: 1}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				checks[0].Key = names[i%bb.keys]
				if err := s.Allow(context.Background(), checks); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Stats().Lease.Spent)/float64(b.N), "leased/op")
		})
	}
}

// instantly admits everything.
type instantly struct{}

func (instantly) Allow(_ context.Context, checks []algorithms.Check) error {
	for i := range checks {
		checks[i].Decision = algorithms.Decision{Allowed: true, Source: algorithms.Shared}
	}
	return nil
}

func TestLeasedTakesDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newLeased(t, newBelow(t), algorithms.LeaseOptions{})
	limit := algorithms.TokenBucket(1_000_000_000, time.Second)
	checks := []algorithms.Check{
		{Policy: "orders", Key: "usr=1", Limit: limit, Cost: 1}, {Policy: "all", Key: "usr=1", Limit: limit, Cost: 1},
	}
	ask := func() {
		if err := s.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
	}
	for s.Stats().Lease.Spent < 10_000 {
		ask()
	}
	if got := testing.AllocsPerRun(10_000, ask); got != 0 {
		t.Errorf("got %v allocations per call, want none", got)
	}
}
