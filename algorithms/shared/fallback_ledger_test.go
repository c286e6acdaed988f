package shared

import (
	"context"
	"fmt"
	"github.com/penstock-go/penstock/algorithms"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const someInstant = int64(1_763_729_430_000_000)

// admitted is a check of one key that a Memory admitted at an instant.
func admitted(t *testing.T, m *algorithms.Memory, l algorithms.Limit, key string, units int64) algorithms.Check {
	t.Helper()
	c := algorithms.Check{Policy: "p", Key: key, Limit: l, Cost: units}
	checks := []algorithms.Check{c}
	if err := m.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
		t.Fatalf("got %+v, %v, want it admitted", checks[0].Decision, err)
	}
	return checks[0]
}

// popped returns what is owed of some keys.
func popped(l *ledger, limit int, now int64) (checks []algorithms.Check) {
	debts := l.pop(limit)
	for _, d := range debts {
		checks = append(checks, d.checks(now)...)
	}
	l.told(len(debts))
	return checks
}

// A told is what the primary is told: units, and how long ago.
type told struct {
	units int64
	ago   time.Duration
}

func TestLedgerTells(t *testing.T) {
	const hour = time.Hour
	tests := map[string]struct {
		limit    algorithms.Limit
		takes    []told // units, and how long before they are told
		returned int64
		want     []told
	}{
		"a bucket":                          {algorithms.TokenBucket(60, hour), []told{{5, 0}}, 0, []told{{5, 0}}},
		"a bucket that drains":              {algorithms.TokenBucket(60, hour), []told{{5, 90 * time.Second}}, 0, []told{{4, 30 * time.Second}}},
		"a bucket that drained":             {algorithms.TokenBucket(60, hour), []told{{5, hour}}, 0, nil},
		"a queue":                           {algorithms.LeakyBucket(60, hour), []told{{5, 90 * time.Second}, {2, 0}}, 0, []told{{6, 30 * time.Second}}},
		"a window":                          {algorithms.FixedWindow(60, hour), []told{{5, 10 * time.Minute}, {2, 0}}, 0, []told{{7, 0}}},
		"a window that turned":              {algorithms.FixedWindow(60, hour), []told{{5, hour}, {2, 0}}, 0, []told{{2, 0}}},
		"a counter":                         {algorithms.SlidingWindowCounter(60, hour), []told{{5, 10 * time.Minute}}, 0, []told{{5, 0}}},
		"a counter, astride":                {algorithms.SlidingWindowCounter(60, hour), []told{{5, hour}, {2, 0}}, 0, []told{{5, hour}, {2, 0}}},
		"a counter, long ago":               {algorithms.SlidingWindowCounter(60, hour), []told{{5, 2 * hour}}, 0, nil},
		"a log":                             {algorithms.SlidingWindowLog(60, hour), []told{{5, 50 * time.Minute}, {2, 7 * time.Minute}, {1, 0}}, 0, []told{{5, 50 * time.Minute}, {2, 7 * time.Minute}, {1, 0}}},
		"a log, some of it gone":            {algorithms.SlidingWindowLog(60, hour), []told{{5, hour}, {2, 7 * time.Minute}}, 0, []told{{2, 7 * time.Minute}}},
		"nothing":                           {algorithms.TokenBucket(60, hour), []told{{0, 0}}, 0, nil},
		"what was returned is not told":     {algorithms.TokenBucket(60, hour), []told{{5, 0}}, 3, []told{{2, 0}}},
		"all of it returned":                {algorithms.FixedWindow(60, hour), []told{{5, 0}}, 5, nil},
		"more returned than was ever taken": {algorithms.FixedWindow(60, hour), []told{{5, 0}}, 9, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now := someInstant
			m, err := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(now) }})
			if err != nil {
				t.Fatal(err)
			}
			_ = m.Close()
			l := newLedger()
			for _, take := range tt.takes {
				now = someInstant - take.ago.Microseconds()
				c := admitted(t, m, tt.limit, "usr=1", take.units)
				l.record(&c, tt.limit, now)
				c.Decision.Receipt.Units() += tt.returned // whatever it was
				c.Op, c.Cost = algorithms.Return, tt.returned
				l.unrecord(&c, c.units())
			}
			now = someInstant
			checks := popped(l, 10, now)
			if len(checks) != len(tt.want) || l.len() != 0 {
				t.Fatalf("got %+v, and %d keys left; want %v, and none", checks, l.len(), tt.want)
			}
			for i, c := range checks {
				got := told{c.Cost, time.Duration(now-c.Decision.Receipt.at) * time.Microsecond}
				if got != tt.want[i] || c.Op != backfill || c.Limit != tt.limit || c.Policy != "p" || c.Key != "usr=1" {
					t.Errorf("got %v (%+v), want %v", got, c, tt.want[i])
				}
				if err := c.validate(); err != nil {
					t.Errorf("a limiter would refuse it: %v", err)
				}
			}
		})
	}
}

// What could not be told is told again, with what came since.
func TestLedgerTellsLater(t *testing.T) {
	for _, limit := range everyAlgorithm(60, time.Hour) {
		now := someInstant
		m, err := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(now) }})
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close()
		l := newLedger()
		take := func(units int64) {
			c := admitted(t, m, limit, "usr=1", units)
			l.record(&c, limit, now)
		}
		take(5)
		debts := l.pop(1)
		if got := debts[0].checks(now); len(got) != 1 || got[0].Cost != 5 {
			t.Fatalf("%v: got %+v, want 5 units", limit, got)
		}
		now += 1_000
		take(2)
		l.restore(debts[0], now)
		l.told(1)
		var units int64
		for _, c := range popped(l, 10, now) {
			units += c.Cost
		}
		if units != 7 || l.len() != 0 {
			t.Errorf("%v: told of %d units, and %d keys are left, want all 7 units", limit, units, l.len())
		}
	}
}

// A log of many entries is told in a few, none of which lasts longer.
func TestLedgerTellsALongLogInShort(t *testing.T) {
	for _, n := range []int64{1, 63, 64, 65, 128, 129, 1_000, 10_000} {
		now, limit := someInstant, algorithms.SlidingWindowLog(10_000, time.Hour)
		m, err := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(now) }})
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close()
		l := newLedger()
		for range n {
			now += 1_000
			c := admitted(t, m, limit, "usr=1", 1)
			l.record(&c, limit, now)
		}
		checks := popped(l, 1, now)
		var units int64
		for i, c := range checks {
			if at := c.Decision.Receipt.at; at != someInstant+1_000*(units+1) {
				t.Errorf("%d entries: entry %d is of %d µs, want that of its oldest", n, i, at-someInstant)
			}
			units += c.Cost
		}
		if len(checks) > maxEntries || units != n {
			t.Errorf("%d entries: told %d units in %d", n, units, len(checks))
		}
	}
}

// However many keys there are, memory is bounded; and one that owes something
// is not forgotten for one that is new.
func TestLedgerIsBounded(t *testing.T) {
	l, limit := newLedger(), algorithms.TokenBucket(60, time.Minute)
	check := func(i int, at int64) algorithms.Check {
		return algorithms.Check{
			Policy: "p", Key: fmt.Sprint("ip=", i), Limit: limit, Cost: 1,
			Decision: algorithms.Decision{Receipt: algorithms.Receipt{units: 1, at: at, t: at, n: 1, algorithm: limit.algorithm}},
		}
	}
	for i := range maxOwed + 10_000 {
		c := check(i, someInstant)
		l.record(&c, limit, someInstant)
	}
	if got := l.len(); got != maxOwed {
		t.Errorf("got %d keys, want %d", got, maxOwed)
	}
	later := someInstant + time.Minute.Microseconds() // all have drained
	c := check(-1, later)
	l.record(&c, limit, later)
	if _, ok := l.keys[identityOf(&c)]; !ok || l.len() != maxOwed {
		t.Errorf("got %d keys, known %v; want a new key instead of one that owes nothing", l.len(), ok)
	}
	for rounds := 0; l.len() > 0; rounds++ {
		if checks := popped(l, handBackKeys, later); len(checks) > handBackKeys || rounds > maxOwed {
			t.Fatalf("round %d: got %d checks", rounds, len(checks))
		}
	}
}

// What is being told is owed still, and keys that are too long to keep never are.
func TestLedgerOwesUntilTold(t *testing.T) {
	l, limit := newLedger(), algorithms.TokenBucket(60, time.Minute)
	for _, key := range []string{"usr=1", strings.Repeat("k", maxKept+1)} {
		l.record(&algorithms.Check{
			Policy: "p", Key: key, Limit: limit, Cost: 1,
			Decision: algorithms.Decision{Receipt: algorithms.Receipt{units: 1, at: someInstant, t: someInstant, n: 1, algorithm: limit.algorithm}},
		}, limit, someInstant)
	}
	debts := l.pop(10)
	if len(debts) != 1 || debts[0].key != "usr=1" || l.len() != 1 {
		t.Fatalf("got %d debts, and %d owed, want that of usr=1, owed still", len(debts), l.len())
	}
	l.restore(debts[0], someInstant)
	l.told(1)
	if l.len() != 1 {
		t.Errorf("got %d owed, want what was put back", l.len())
	}
	l.told(len(l.pop(10)))
	if l.len() != 0 {
		t.Errorf("got %d owed, want none", l.len())
	}
}

// Random keys without end in an outage cost a bounded amount of memory, and time.
func TestFallbackIsBounded(t *testing.T) {
	const keys = 150_000
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, shared: newFakePrimary()}
		w.memory = algorithms.Must(algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 100_000}))
		_ = w.memory.Close()
		w.start(w.shared, nil)
		w.trip()
		limit, checks := algorithms.TokenBucket(60, time.Hour), make([]algorithms.Check, 1)
		for i := range keys {
			checks[0] = algorithms.Check{Policy: "p", Key: fmt.Sprintf("ip=%x", i), Limit: limit, Cost: 1}
			if err := w.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
				t.Fatalf("key %d: got %+v, %v", i, checks[0].Decision, err)
			}
		}
		if owed, held := w.stats().Owed, w.memory.Stats().Keys; owed != maxOwed || held > 100_000 {
			t.Errorf("%d keys are owed, and %d held, want at most 100 000 of both", owed, held)
		}
	})
}
