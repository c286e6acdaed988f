package algorithms_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
)

func newMemory(t *testing.T, o *algorithms.MemoryOptions) *algorithms.Memory {
	t.Helper()
	m, err := algorithms.NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// take takes one unit and returns the decision.
func take(t *testing.T, l algorithms.Limiter, key string, limit algorithms.Limit) algorithms.Decision {
	t.Helper()
	d, err := algorithms.Allow(context.Background(), l, key, limit)
	if err != nil {
		t.Fatalf("Allow(%q, %v): %v", key, limit, err)
	}
	return d
}

func TestMemoryForgetsWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, nil)
		for i := range 5_000 {
			take(t, m, "usr="+strconv.Itoa(i), algorithms.TokenBucket(60, time.Minute))
			take(t, m, "usr="+strconv.Itoa(i), algorithms.SlidingWindowLog(60, time.Minute))
		}
		if got := m.Stats().Keys; got != 10_000 {
			t.Fatalf("got %d keys, want 10 000", got)
		}
		time.Sleep(30 * time.Second)
		if got := m.Stats().Keys; got != 5_000 {
			t.Errorf("after 30 s: got %d keys, want the 5 000 logs, which last a minute", got)
		}
		time.Sleep(time.Minute)
		if got := m.Stats(); got.Keys != 0 || got.Expired != 10_000 || got.Evicted != 0 {
			t.Errorf("after a minute: got %+v, want no keys and 10 000 expired", got)
		}
	})
}

func TestMemoryEvictsWhatHasLeastToForget(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 100, Now: clock.now})
	limit := algorithms.TokenBucket(10, time.Hour)
	heavy := algorithms.Check{Policy: algorithms.DefaultPolicy, Key: "usr=heavy", Limit: limit, Cost: 10}
	if err := m.Allow(context.Background(), []algorithms.Check{heavy}); err != nil {
		t.Fatal(err)
	}
	for i := range 1_000 {
		if d := take(t, m, "ip="+strconv.Itoa(i), limit); !d.Allowed {
			t.Fatalf("key %d: got %+v, want it admitted: there is something to evict", i, d)
		}
	}
	got := m.Stats()
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
	var events []algorithms.Event
	m := newMemory(t, &algorithms.MemoryOptions{
		MaxKeys: 10, Now: clock.now,
		Observe: func(e algorithms.Event) { events = append(events, e) },
	})
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
	if len(events) != 1 || events[0].Kind != algorithms.EventCapacity || events[0].Policy != algorithms.DefaultPolicy {
		t.Errorf("got events %v, want one of capacity", events)
	}
	if got := m.Stats(); got.Refused != 1 || got.Keys != 10 {
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
	if got := m.Stats().Keys; got != 2 {
		t.Errorf("got %d keys, want 2", got)
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
		if got := m.Stats().Keys; got > maxKeys || got < maxKeys*9/10 {
			t.Errorf("MaxKeys %d: got %d keys", maxKeys, got)
		}
	}
}

func TestMemoryOptions(t *testing.T) {
	if _, err := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: -1}); err == nil {
		t.Error("a negative MaxKeys is no error")
	}
	for _, year := range []int{1969, 2254} {
		m := newMemory(t, &algorithms.MemoryOptions{Now: func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }})
		if _, err := algorithms.Allow(context.Background(), m, "usr=1", algorithms.TokenBucket(1, time.Second)); err == nil {
			t.Errorf("a clock in %d is no error", year)
		}
	}
}

func TestMemoryClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m, err := algorithms.NewMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if d := take(t, m, "usr=1", algorithms.TokenBucket(1, time.Second)); !d.Allowed {
		t.Errorf("after Close: got %+v, want it to go on deciding", d)
	}
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
	}
}
