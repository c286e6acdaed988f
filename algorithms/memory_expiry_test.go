// How long a Memory keeps a key that several limits change.

package algorithms_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A key that several limits of one call charge is kept for the slowest of them.
func TestMemoryKeepsAKeyForItsSlowestLimit(t *testing.T) {
	slow, fast := algorithms.TokenBucket(10, 10*time.Hour), algorithms.TokenBucket(10, time.Second)
	for _, order := range [][]algorithms.Limit{{slow, fast}, {fast, slow}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, nil)
			var call []algorithms.Check
			for _, l := range order {
				call = append(call, algorithms.Check{Policy: "default", Key: "usr=1", Limit: l, Cost: 1})
			}
			if err := m.Allow(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			sweep(t, m)
			check := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: slow}}
			if err := m.Allow(t.Context(), check); err != nil {
				t.Fatal(err)
			}
			if got := check[0].Decision.Remaining; got != 8 {
				t.Errorf("%v: got %d remaining, want 8: the key was forgotten", order, got)
			}
		})
	}
}

// sweep adds so many keys, within ten seconds, that the Memory forgets all keys that are full.
func sweep(t *testing.T, m *algorithms.Memory) {
	for i := range 100_000 {
		take(t, m, "usr="+strconv.Itoa(2+i), algorithms.TokenBucket(10, time.Second))
		if i%1_000 == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// A Grant leaves a key's expiry alone, whatever limit it names.
func TestMemoryKeepsTheExpiryOfAGrantedKey(t *testing.T) {
	slow, fast := algorithms.TokenBucket(10, 10*time.Hour), algorithms.TokenBucket(10, time.Second)
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, nil)
		ask := func(op algorithms.Op, l algorithms.Limit, cost int64) int64 {
			checks := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: l, Op: op, Cost: cost}}
			if err := m.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
			return checks[0].Decision.Remaining
		}
		ask(algorithms.Take, slow, 8)
		ask(algorithms.Grant, fast, 1)
		sweep(t, m)
		if got := ask(algorithms.Take, slow, 0); got != 3 {
			t.Errorf("got %d remaining, want 3: the key was forgotten", got)
		}
	})
}

// After a flood, a quiet service forgets the keys of the flood within seconds, and no
// key whose limit is not full.
func TestQuietMemoryForgetsAFlood(t *testing.T) {
	clock := newClock()
	m := newMemory(t, &algorithms.MemoryOptions{Now: clock.now})
	const flood, clients, perSecond = 200_000, 100, 200
	short, long := algorithms.TokenBucket(1, time.Second), algorithms.TokenBucket(10, 10*time.Hour)
	for i := range flood {
		take(t, m, "flood="+strconv.Itoa(i), short)
	}
	clock.add(2 * time.Second) // a key lingers for a second
	for i := range 20 * perSecond {
		take(t, m, "usr="+strconv.Itoa(i%clients), long)
		clock.add(time.Second / perSecond)
	}
	if got := m.Stats().Memory.Keys; got != clients {
		t.Errorf("%d keys are left after twenty quiet seconds, want the %d that are in use", got, clients)
	}
}

// However long a quiet Memory waits, its next call looks at each record once: each sweep reads the clock.
func TestQuietCallMakesOneRound(t *testing.T) {
	instant, reads := time.Now(), 0
	m := newMemory(t, &algorithms.MemoryOptions{MaxKeys: 1, Now: func() time.Time { reads++; return instant }})
	take(t, m, "usr=1", algorithms.TokenBucket(1, time.Hour))
	instant, reads = instant.Add(time.Minute), 0
	take(t, m, "usr=1", algorithms.TokenBucket(1, time.Hour))
	if reads != 2 {
		t.Errorf("the clock was read %d times, want 2: for the decision and for one sweep", reads)
	}
}

// A Grant that finds nothing to credit only looks: units that have expired meanwhile stay in the state until the next take.
func TestMemoryGrantOnlyLooks(t *testing.T) {
	for _, limit := range []algorithms.Limit{algorithms.SlidingWindowLog(5, time.Minute), algorithms.Concurrent(5, time.Minute)} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, nil)
			for range 3 {
				take(t, m, "usr=1", limit)
				time.Sleep(25 * time.Second)
			}
			grant := []algorithms.Check{{Policy: "default", Key: "usr=1", Limit: limit, Op: algorithms.Grant}}
			for range 2 {
				if err := m.Allow(t.Context(), grant); err != nil || grant[0].Decision.Remaining != 3 {
					t.Errorf("%v: got %+v, %v; want 3 left", limit, grant[0].Decision, err)
				}
			}
			if d := take(t, m, "usr=1", limit); d.Remaining != 2 {
				t.Errorf("%v: got %+v, want 2 left", limit, d)
			}
		})
	}
}
