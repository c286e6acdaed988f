// Which keys become hot, and which stay so.

package lease

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
)

// Fifty takes in an epoch make a key hot. From then on blocks answer.
func TestHotKeysAreLeased(t *testing.T) {
	for _, limit := range leasable() {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{})
			l.warm(t, "usr=1", limit)
			first := l.fake.Drain()[50]
			if first.Cost != 25 || !first.Exact || first.Fail != algorithms.FailClosed || first.Op != algorithms.Take {
				t.Errorf("%v: got %+v for a block", limit, first)
			}
			if left := l.left(t, "usr=1", limit); left != 2_000-50-25 {
				t.Errorf("%v: got %d left below, want all leased units charged", limit, left)
			}
			time.Sleep(3 * time.Millisecond)
			want := take(t, l.fake.Memory, "usr=1", limit, 0)
			for i := range int64(12) {
				got := take(t, l, "usr=1", limit, 1)
				if !got.Allowed || got.Source != algorithms.Shared || got.Remaining != 24-i || got.RetryAfter != 0 ||
					got.ResetAfter != want.ResetAfter || got.UnitAfter != 0 || got.Receipt.Units() != 1 {
					t.Errorf("%v: take %d of the lease: got %+v, want it to reset after %v", limit, i, got, want.ResetAfter)
				}
			}
			if asked := l.fake.Drain(); len(asked) != 0 {
				t.Errorf("%v: got %d checks below, want none", limit, len(asked))
			}
			take(t, l, "usr=1", limit, 1) // leaves less than a half
			synctest.Wait()
			if got, want := l.stats(), (leaseStats{Keys: 1, Units: 12 + 25, Blocks: 2, Leased: 50, Spent: 13}); got != want {
				t.Errorf("%v: got %+v, want %+v", limit, got, want)
			}
			if got := take(t, l, "usr=1", limit, 1); got.Remaining != 11+25 {
				t.Errorf("%v: got %d remaining, want the rest of both blocks", limit, got.Remaining)
			}
		})
	}
}

// A key without takes is not hot for long, and leaves its place to another, also
// where Hold and HotAt are small.
func TestKeysCoolDown(t *testing.T) {
	for _, o := range []Options{
		{HotAt: 10, Hold: 10 * time.Millisecond}, {HotAt: 10}, {HotAt: 50, Hold: 50 * time.Millisecond}, {Hold: 10 * time.Millisecond}, {},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, o)
			l.heat(t, "usr=1", algorithms.FixedWindow(2_000, 24*time.Hour))
			if got := l.stats().Keys; got != 1 {
				t.Fatalf("%+v: got %d hot keys, want the key with all takes", o, got)
			}
			time.Sleep(10 * time.Second)
			if got := l.stats().Keys; got != 0 {
				t.Errorf("%+v: got %d hot keys after 10 s without takes", o, got)
			}
		})
	}
}

func TestColdKeysAreNotLeased(t *testing.T) {
	for _, others := range []int{0, 15} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{MaxKeys: 1}) // 16 slots for all keys
			limit := algorithms.TokenBucket(1_000_000, time.Second)
			for range 10 { // epochs of 100 ms
				for i := range 49 {
					take(t, l, "usr=lukewarm", limit, 1)
					for j := range others {
						take(t, l, "usr="+strconv.Itoa(15*i+j), limit, 1)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := l.stats(); got != (leaseStats{}) {
				t.Errorf("got %+v, want nothing: no key had 500 takes per second", got)
			}
		})
	}
}

// Whatever other keys share its slot, a key that is much hotter is found, and no
// other key spends its units.
func TestHotKeyAmongColdOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, Options{MaxKeys: 1}) // 16 slots for all keys
		limit := algorithms.TokenBucket(1_000_000, time.Second)
		for i := range 49 * 16 {
			take(t, l, "usr="+strconv.Itoa(i/(1+i%5)), limit, 1) // they leave votes in all slots
		}
		time.Sleep(100 * time.Millisecond)
		l.heat(t, "usr=hot", limit)
		synctest.Wait()
		if got := l.stats(); got.Keys != 1 || got.Units != 25 {
			t.Errorf("got %+v, want one hot key: its takes are the epoch's first", got)
		}
		for i := range 160 {
			take(t, l, "usr="+strconv.Itoa(i), limit, 1)
		}
		take(t, l, "usr=hot", limit, 1)
		if got := l.stats(); got.Keys != 1 || got.Spent != 1 {
			t.Errorf("got %+v, want one unit spent, by the hot key", got)
		}
		for range 400 {
			take(t, l, "usr=second", limit, 1)
			take(t, l, "usr=third", limit, 1)
		}
		if got := l.stats(); got.Keys != 1 {
			t.Errorf("got %d keys, want MaxKeys at most", got.Keys)
		}
	})
}

func TestHotKeyOutvotesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, Options{MaxKeys: 1})
		limit := algorithms.TokenBucket(1_000_000, time.Second)
		for i := range 40 {
			take(t, l, "usr="+strconv.Itoa(i), limit, 1) // they hold all slots
		}
		for range 100 {
			take(t, l, "usr=hot", limit, 1)
		}
		if got := l.stats(); got.Keys != 1 {
			t.Errorf("got %+v, want one hot key: it outvotes others", got)
		}
	})
}

func TestOtherAlgorithmsAndPoliciesAreNotLeased(t *testing.T) {
	for _, check := range []algorithms.Check{
		{Policy: "login", Limit: algorithms.LeakyBucket(10_000, time.Second)},
		{Policy: "login", Limit: algorithms.SlidingWindowLog(10_000, time.Second)},
		{Policy: "other", Limit: algorithms.TokenBucket(10_000, time.Second)},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeased(t, Options{Policies: []string{"orders", "login"}})
			check.Key, check.Cost = "usr=1", 1
			for range 1_000 {
				l.allow(t, check)
			}
			synctest.Wait()
			if got := l.stats(); got != (leaseStats{}) {
				t.Errorf("%v of policy %s: got %+v, want nothing leased", check.Limit, check.Policy, got)
			}
		})
	}
}

func TestHugeKeysAreNotLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeased(t, Options{MaxKeys: 1})
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		for range 100 {
			take(t, l, strings.Repeat("x", 10_000), limit, 1)
		}
		for i := range 100 {
			take(t, l, "usr="+strconv.Itoa(i), limit, 1)
		}
		if got := l.stats(); got.Keys != 0 {
			t.Errorf("got %+v, want no key of 10 kB, nor one of its slot", got)
		}
	})
}

// A caller may overwrite the bytes of its strings after a call.
func TestHotKeysKeepTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := algorithms.FixedWindow(2_000, 24*time.Hour)
		l := newLeased(t, Options{})
		name := []byte("usr=1")
		l.warm(t, unsafe.String(&name[0], len(name)), limit)
		copy(name, "usr=2")
		take(t, l, "usr=1", limit, 1)
		if got := l.stats().Spent; got != 1 {
			t.Errorf("got %d units spent, want the take's", got)
		}
	})
}
