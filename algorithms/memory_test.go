// Memory's bounds, its eviction, and how it forgets.

package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Calls forget keys that are full again: at most half of the keys have expired
// while new keys come. A Memory without calls forgets nothing.
func TestMemoryForgetsExpiredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, nil)
		const perSecond, lives = 20_000, 3 // seconds: two until it is full, and one that it lingers
		limit := algorithms.TokenBucket(1, (lives-1)*time.Second)
		for i := range 15 * perSecond {
			take(t, m, "usr="+strconv.Itoa(i), limit)
			if i%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		live, got := lives*perSecond, m.Stats().Memory
		if got.Keys < live || got.Keys > live*2 || got.Evicted > 0 {
			t.Errorf("got %+v, want %d keys that live, and at most as many expired ones", got, live)
		}
		if got.Expired+uint64(got.Keys) != 15*perSecond {
			t.Errorf("got %+v, want every key held or counted as expired", got)
		}
		time.Sleep(time.Hour)
		if idle := m.Stats().Memory; idle != got {
			t.Errorf("an hour without calls: got %+v, want %+v as before", idle, got)
		}
		for i := range 400_000 {
			take(t, m, "usr=again-"+strconv.Itoa(i%1_000), limit)
		}
		if got := m.Stats().Memory.Keys; got > live/2 {
			t.Errorf("after calls of a thousand keys: got %d keys, want hardly any other", got)
		}
	})
}

// A new key is not refused while an expired one holds its place, however many
// keys were denied of late.
func TestMemorySweepsBeforeItRefuses(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 20, Now: clock.now})
	short := algorithms.FixedWindow(1, 100*time.Millisecond)
	for i := range 20 {
		take(t, m, "usr="+strconv.Itoa(i), short)
		take(t, m, "usr="+strconv.Itoa(i), short) // denied: not to be evicted for a second
	}
	clock.add(200 * time.Millisecond)
	if d := take(t, m, "usr=new", short); !d.Allowed {
		t.Errorf("got %+v, want the new key admitted: all others have expired", d)
	}
	if got := m.Stats().Memory; got.Refused != 0 || got.Expired != 20 {
		t.Errorf("got %+v, want 20 expired keys and none refused", got)
	}
}

func TestMemoryEvictsWhatHasLeastToForget(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 100, Now: clock.now})
	limit := algorithms.TokenBucket(10, time.Hour)
	heavy := algorithms.Check{Policy: "default", Key: "usr=heavy", Limit: limit, Cost: 10}
	if err := m.Allow(context.Background(), []algorithms.Check{heavy}); err != nil {
		t.Fatal(err)
	}
	for i := range 1_000 {
		if d := take(t, m, "ip="+strconv.Itoa(i), limit); !d.Allowed {
			t.Fatalf("key %d: got %+v, want it admitted: there is something to evict", i, d)
		}
	}
	got := m.Stats().Memory
	if got.Keys != 100 || got.Evicted != 901 || got.Refused != 0 {
		t.Errorf("got %+v, want 100 keys and 901 evictions", got)
	}
	if d := take(t, m, "usr=heavy", limit); d.Allowed {
		t.Error("the key that had most to forget was evicted")
	}
}

// A flood of random keys must not free a key that is being denied.
func TestMemoryKeepsDeniedKeys(t *testing.T) {
	// Full long before those of the flood.
	for _, limit := range []algorithms.Limit{algorithms.FixedWindow(1, time.Second), algorithms.TokenBucket(1, time.Second)} {
		t.Run(limit.Algorithm().String(), func(t *testing.T) { testMemoryKeepsDeniedKeys(t, limit) })
	}
}

func testMemoryKeepsDeniedKeys(t *testing.T, short algorithms.Limit) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 10, Now: clock.now})
	for i := range 10 {
		take(t, m, "usr="+strconv.Itoa(i), short)
		if d := take(t, m, "usr="+strconv.Itoa(i), short); d.Allowed {
			t.Fatal("admitted above the limit")
		}
	}
	clock.add(999_999 * time.Microsecond)
	d := take(t, m, "ip=new", algorithms.TokenBucket(1, time.Hour))
	if d.Allowed || d.Source != algorithms.Undecided || d.RetryAfter != time.Second || d.Receipt.Units() != 0 {
		t.Errorf("a new key beside denied ones: got %+v, want undecided, for a second", d)
	}
	if got := m.Stats().Memory; got.Refused != 1 || got.Keys != 10 {
		t.Errorf("got %+v, want 1 refused and 10 keys", got)
	}
	clock.add(time.Microsecond)
	if d := take(t, m, "ip=new", algorithms.TokenBucket(1, time.Hour)); !d.Allowed {
		t.Errorf("a second after the denials: got %+v, want it admitted", d)
	}
}

// A refused key is a denial of the whole call; nothing is charged.
func TestMemoryRefusalChargesNothing(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 2, Now: clock.now})
	hour := algorithms.FixedWindow(1, time.Hour)
	for _, key := range []string{"usr=1", "usr=2"} {
		take(t, m, key, hour)
		take(t, m, key, hour)
	}
	raised := algorithms.FixedWindow(5, time.Hour)
	checks := []algorithms.Check{
		{Policy: "default", Key: "usr=1", Limit: raised, Cost: 1},
		{Policy: "default", Key: "usr=new", Limit: raised, Cost: 1},
		{Policy: "default", Key: "usr=shadow", Limit: raised, Cost: 1, Op: algorithms.Trial},
	}
	if err := m.Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	if algorithms.Allowed(checks) || !checks[0].Decision.Allowed || checks[0].Decision.Remaining != 4 || checks[2].Decision.Receipt.Units() != 0 {
		t.Errorf("got %+v, want the new key refused and nothing charged", checks)
	}
	if got := m.Stats().Memory.Keys; got != 2 {
		t.Errorf("got %d keys, want 2", got)
	}
}

// A trial for whose key there is no room is denied, and the call proceeds.
func TestMemoryRefusesTrials(t *testing.T) {
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 1, Now: newClock().now})
	hour := algorithms.FixedWindow(5, time.Hour)
	take(t, m, "usr=1", algorithms.FixedWindow(1, time.Hour))
	take(t, m, "usr=1", algorithms.FixedWindow(1, time.Hour)) // denied, so its place is not free
	checks := []algorithms.Check{
		{Policy: "default", Key: "usr=1", Limit: hour, Cost: 1},
		{Policy: "default", Key: "usr=shadow", Limit: hour, Cost: 1, Op: algorithms.Trial},
	}
	if err := m.Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	if d := checks[1].Decision; !algorithms.Allowed(checks) || d.Allowed || d.Receipt.Units() != 0 {
		t.Errorf("got %+v, want the take allowed and the trial denied", checks)
	}
}

// After the clock stepped back, denials of its future protect nothing for ever.
func TestMemoryEvictsAfterClockStep(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 1, Now: clock.now})
	take(t, m, "usr=1", algorithms.Nobody())
	take(t, m, "usr=1", algorithms.FixedWindow(1, time.Hour))
	take(t, m, "usr=1", algorithms.FixedWindow(1, time.Hour))
	clock.add(-time.Hour)
	if d := take(t, m, "usr=2", algorithms.FixedWindow(1, time.Hour)); !d.Allowed {
		t.Errorf("got %+v, want the new key admitted", d)
	}
}

func TestMemoryShardsKeepTheBound(t *testing.T) {
	for _, maxKeys := range []int{1, 1_000, 5_000, 100_000} {
		m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: maxKeys})
		limit := algorithms.TokenBucket(10, time.Hour)
		for i := range min(2*maxKeys, 120_000) {
			take(t, m, fmt.Sprint("ip=", i), limit)
		}
		if got := m.Stats().Memory.Keys; got > maxKeys || got < maxKeys*9/10 {
			t.Errorf("MaxKeys %d: got %d keys", maxKeys, got)
		}
	}
}

// Every value of the options is accepted, and an impossible clock is an error of
// the call.
func TestMemoryOptions(t *testing.T) {
	for _, maxKeys := range []int{-1, 0} {
		m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: maxKeys})
		for i := range 10_000 {
			take(t, m, "usr="+strconv.Itoa(i), algorithms.TokenBucket(1, time.Hour))
		}
		if got := m.Stats().Memory; got.Keys != 10_000 {
			t.Errorf("MaxKeys %d: got %+v, want the default bound", maxKeys, got)
		}
	}
	for _, now := range []time.Time{{}, time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2254, 1, 1, 0, 0, 0, 0, time.UTC)} {
		m := newMemory(t, &algorithms.MemoryOptions{Now: func() time.Time { return now }})
		if _, err := algorithms.Allow(context.Background(), m, "usr=1", algorithms.TokenBucket(1, time.Second)); !errors.Is(err, algorithms.ErrInvalid) {
			t.Errorf("a clock that says %v: got %v, want ErrInvalid", now, err)
		}
	}
}

// A bubble fails if a goroutine is left in it.
func TestMemoryOwnsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take(t, newMemory(t, nil), "usr=1", algorithms.TokenBucket(1, time.Second))
	})
}

func TestMemoryDoesNotAllocate(t *testing.T) {
	m := newMemory(t, nil)
	for _, limit := range plenty() {
		if limit.Algorithm() == algorithms.SlidingWindowLog(1, 1).Algorithm() {
			continue // a log grows
		}
		checks := []algorithms.Check{
			{Policy: "merchant", Key: "usr=1", Limit: limit, Cost: 1},
			{Policy: "route", Key: "usr=1|rt=GET%20/v1/orders", Limit: limit, Cost: 1},
			{Policy: "global", Key: "const=all", Limit: limit, Cost: 1},
		}
		got := testing.AllocsPerRun(100, func() {
			if err := m.Allow(context.Background(), checks); err != nil {
				t.Fatal(err)
			}
		})
		if got >= 1 && !raceEnabled { // the race detector makes sync.Pool forget
			t.Errorf("%v: got %v allocations per call, want none", limit, got)
		}
		got = testing.AllocsPerRun(100, func() {
			if _, err := algorithms.Allow(context.Background(), m, "usr=1", limit); err != nil {
				t.Fatal(err)
			}
		})
		if concurrent := limit.Algorithm().Concurrent(); got >= 1 && !concurrent && !raceEnabled {
			t.Errorf("%v: got %v allocations per Allow, want none", limit, got)
		}
	}
}
