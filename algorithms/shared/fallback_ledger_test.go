// Debts in the ledger, and the backfills that are made of them.

package shared

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const someInstant = int64(1_763_729_430_000_000)

// A ledgerWorld is a ledger, and a Memory that charges what it records.
type ledgerWorld struct {
	*ledger
	t      *testing.T
	memory *algorithms.Memory
	now    int64 // µs
}

func newLedgerWorld(t *testing.T) *ledgerWorld {
	w := &ledgerWorld{ledger: newLedger(nil), t: t, now: someInstant}
	w.memory = algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.UnixMicro(w.now) }})
	return w
}

// charged is an item that the memory has answered now.
func (w *ledgerWorld) charged(c algorithms.Check) *item {
	w.t.Helper()
	c.Policy = "p"
	checks := []algorithms.Check{c}
	it := itemOf(w.t, c)
	if err := w.memory.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
		w.t.Fatalf("got %+v, %v, want it admitted", checks[0].Decision, err)
	}
	it.decision = checks[0].Decision
	return it
}

// take records units that the memory admits now.
func (w *ledgerWorld) take(l algorithms.Limit, units int64) {
	w.t.Helper()
	it := w.charged(algorithms.Check{Key: "usr=1", Limit: l, Cost: units})
	w.record(it, l.Step(), w.now)
}

// giveBack says that units of a take were returned.
func (w *ledgerWorld) giveBack(l algorithms.Limit, units int64) {
	it := itemOf(w.t, algorithms.Check{Policy: "p", Key: "usr=1", Limit: l, Cost: units, Op: algorithms.Return})
	it.Cost = units // whatever the receipt was
	w.unrecord(it, w.now)
}

func itemOf(t *testing.T, c algorithms.Check) *item {
	t.Helper()
	one, err := newCall([]algorithms.Check{c})
	if err != nil {
		t.Fatal(err)
	}
	it := &one.items[0]
	it.decision = algorithms.Decision{} // items are pooled
	return it
}

// popped returns the backfills of some keys. The primary charges them.
func (w *ledgerWorld) popped() (owed []*item) {
	for _, sent := range w.popDebts(w.now) {
		owed = append(owed, &sent.call.items[0])
		sent.ended(nil)
	}
	return owed
}

// owes returns how many keys have debts.
func (l *ledger) owes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.debts)
}

// A debt is the units that count at the hand-back.
func TestLedgerOwesWhatCounts(t *testing.T) {
	const hour = time.Hour
	type taken struct {
		units int64
		ago   time.Duration // before the hand-back
	}
	tests := map[string]struct {
		limit    algorithms.Limit
		takes    []taken
		returned int64
		want     int64
	}{
		"a bucket":                          {algorithms.TokenBucket(60, hour), []taken{{5, 0}}, 0, 5},
		"a bucket that drains":              {algorithms.TokenBucket(60, hour), []taken{{5, 90 * time.Second}}, 0, 4},
		"a bucket that drained":             {algorithms.TokenBucket(60, hour), []taken{{5, hour}}, 0, 0},
		"a queue":                           {algorithms.LeakyBucket(60, hour), []taken{{5, 90 * time.Second}, {2, 0}}, 0, 6},
		"a window":                          {algorithms.FixedWindow(60, hour), []taken{{5, 10 * time.Minute}, {2, 0}}, 0, 7},
		"a window that turned":              {algorithms.FixedWindow(60, hour), []taken{{5, hour}, {2, 0}}, 0, 2},
		"a counter":                         {algorithms.SlidingWindowCounter(60, hour), []taken{{5, 10 * time.Minute}}, 0, 5},
		"a counter, astride":                {algorithms.SlidingWindowCounter(60, hour), []taken{{5, hour}, {2, 0}}, 0, 3},
		"a counter, long ago":               {algorithms.SlidingWindowCounter(60, hour), []taken{{5, 2 * hour}}, 0, 0},
		"a log":                             {algorithms.SlidingWindowLog(60, hour), []taken{{5, 50 * time.Minute}, {2, 7 * time.Minute}, {1, 0}}, 0, 8},
		"a log, some of it gone":            {algorithms.SlidingWindowLog(60, hour), []taken{{5, hour}, {2, 7 * time.Minute}}, 0, 2},
		"nothing":                           {algorithms.TokenBucket(60, hour), []taken{{0, 0}}, 0, 0},
		"some of it returned":               {algorithms.TokenBucket(60, hour), []taken{{5, 0}}, 3, 2},
		"all of it returned":                {algorithms.FixedWindow(60, hour), []taken{{5, 0}}, 5, 0},
		"returned in a later window":        {algorithms.FixedWindow(60, hour), []taken{{10, 3 * hour}, {8, 0}}, 8, 0},
		"returned after others drained":     {algorithms.TokenBucket(60, hour), []taken{{10, 3 * hour}, {8, 0}}, 8, 0},
		"more returned than was ever taken": {algorithms.FixedWindow(60, hour), []taken{{5, 0}}, 9, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newLedgerWorld(t)
			for _, take := range tt.takes {
				w.now = someInstant - take.ago.Microseconds()
				w.take(tt.limit, take.units)
				w.giveBack(tt.limit, tt.returned)
			}
			w.now = someInstant
			items := w.popped()
			if tt.want == 0 && len(items) == 0 {
				return
			}
			if len(items) != 1 || w.owes() != 0 {
				t.Fatalf("got %+v, and %d keys left; want one backfill, and none", items, w.owes())
			}
			it, key := items[0], step.Key{Policy: "p", Text: "usr=1", Scope: tt.limit.Step().Scope}
			if it.Cost != tt.want || it.Op != step.Backfill || it.Limit != *tt.limit.Step() || it.Key != key || it.Dropped {
				t.Errorf("got %+v, want %d units", it.Item, tt.want)
			}
		})
	}
}

// A debt that could not be handed back is still owed, with the units since.
func TestLedgerKeepsRefusedDebts(t *testing.T) {
	for _, limit := range everyAlgorithm(60, time.Hour) {
		w := newLedgerWorld(t)
		w.take(limit, 5)
		sent := w.popDebts(w.now)
		if len(sent) != 1 || sent[0].call.items[0].Cost != 5 {
			t.Fatalf("%v: got %+v, want 5 units", limit, sent)
		}
		w.now += 1_000
		w.take(limit, 2)
		sent[0].ended(errRefused)
		w.hurry()
		var units int64
		for _, it := range w.popped() {
			units += it.Cost
		}
		if units != 7 || w.owes() != 0 {
			t.Errorf("%v: %d units are owed, and %d keys are left, want all 7 units", limit, units, w.owes())
		}
	}
}

// one is an item that takes a unit of a key.
func one(t *testing.T, key string, l algorithms.Limit) *item {
	return itemOf(t, algorithms.Check{Policy: "p", Key: key, Limit: l, Cost: 1})
}

// A shared Return takes its units off the debt of its key, as far as they have not drained, but none that a receipt of the
// memory names.
func TestLedgerWithdraws(t *testing.T) {
	limit := algorithms.TokenBucket(60, time.Minute)
	after := func(seconds int64) int64 { return someInstant + seconds*time.Second.Microseconds() }
	back := itemOf(t, algorithms.Check{Policy: "p", Key: "usr=1", Limit: limit, Op: algorithms.Return, Cost: 5})
	back.Cost = 5 // whatever the receipt was
	for name, tt := range map[string]struct {
		forced, named int64
		between       int64 // s
		want          bool
		owed          int64 // at last
	}{
		"its units":                {5, 0, 0, true, 0},
		"and others":               {9, 0, 0, true, 4},
		"and named ones":           {5, 3, 0, true, 3},
		"some have drained":        {5, 0, 2, true, 0},
		"all have drained":         {5, 0, 20, false, 0},
		"named ones only":          {0, 8, 0, false, 8},
		"named ones came later":    {5, 8, 20, false, 8},
		"too few":                  {4, 3, 0, false, 7},
		"others drained meanwhile": {5, 4, 3, true, 1},
	} {
		l := newLedger(nil)
		charge := func(units, now int64, receipt algorithms.Receipt) {
			it := itemOf(t, algorithms.Check{Policy: "p", Key: "usr=1", Limit: limit, Cost: units})
			it.decision.Receipt = receipt
			if units > 0 {
				l.record(it, limit.Step(), now)
			}
		}
		now := after(tt.between)
		charge(tt.forced, someInstant, algorithms.Receipt{})
		charge(tt.named, now, algorithms.ReceiptOf(step.Receipt{Units: tt.named}))
		got, owed := l.withdraw(back, now), int64(0)
		if d := l.debts[back.Key]; d != nil {
			owed = d.bringTo(now)
		}
		if got != tt.want || owed != tt.owed {
			t.Errorf("%s: got %v, and %d units owed, want %v and %d", name, got, owed, tt.want, tt.owed)
		}
	}
}

// However many keys there are, memory is bounded. A new key takes no place of a
// key that owes something.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	l, limit := newLedger(nil), algorithms.TokenBucket(60, time.Minute)
	for i := range maxOwed + 10_000 {
		l.record(one(t, fmt.Sprint("ip=", i), limit), limit.Step(), someInstant)
	}
	if got := l.owes(); got != maxOwed {
		t.Errorf("got %d keys, want %d", got, maxOwed)
	}
	later := someInstant + time.Minute.Microseconds() // all have drained
	it := one(t, "ip=-1", limit)
	l.record(it, limit.Step(), later)
	if _, ok := l.debts[it.Key]; !ok || l.owes() > maxOwed {
		t.Errorf("got %d keys, known %v; want a new key instead of one that owes nothing", l.owes(), ok)
	}
	w := &ledgerWorld{ledger: l, t: t, now: later}
	for rounds := 0; l.owes() > 0; rounds++ {
		if items := w.popped(); len(items) > handBackKeys || rounds > maxOwed {
			t.Fatalf("round %d: got %d items", rounds, len(items))
		}
	}
}

// A debt that is on its way is still owed. Keys that are too long to keep owe
// nothing.
func TestLedgerOwesUntilSent(t *testing.T) {
	l, limit := newLedger(nil), algorithms.TokenBucket(60, time.Minute)
	for _, key := range []string{"usr=1", strings.Repeat("k", maxKept+1)} {
		l.record(one(t, key, limit), limit.Step(), someInstant)
	}
	sent := l.popDebts(someInstant)
	if len(sent) != 1 || sent[0].call.items[0].Key.Text != "usr=1" || l.owes() != 1 {
		t.Fatalf("got %d backfills, and %d owed, want usr=1's, still owed", len(sent), l.owes())
	}
	if again := l.popDebts(someInstant); again != nil {
		t.Errorf("got %+v while it is on its way, want it sent once", again)
	}
	sent[0].ended(errRefused)
	l.hurry()
	if l.owes() != 1 {
		t.Errorf("got %d owed, want what was refused", l.owes())
	}
	l.popDebts(someInstant)[0].ended(nil)
	if l.owes() != 0 {
		t.Errorf("got %d owed, want none", l.owes())
	}
}

// Random keys without end in an outage cost a bounded amount of memory and time.
func TestFallbackIsBounded(t *testing.T) {
	t.Parallel()
	const keys = 110_000
	synctest.Test(t, func(t *testing.T) {
		memory := algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: 100_000})
		w := &world{t: t, shared: newFakePrimary(), memory: memory}
		w.start(w.shared, nil)
		w.trip()
		limit, checks := algorithms.TokenBucket(60, time.Hour), make([]algorithms.Check, 1)
		for i := range keys {
			checks[0] = algorithms.Check{Policy: "p", Key: fmt.Sprintf("ip=%x", i), Limit: limit, Cost: 1}
			if err := w.Allow(context.Background(), checks); err != nil || !checks[0].Decision.Allowed {
				t.Fatalf("key %d: got %+v, %v", i, checks[0].Decision, err)
			}
		}
		if owed, held := w.stats().Owed, memory.Stats().Memory.Keys; owed != maxOwed || held > 100_000 {
			t.Errorf("%d keys are owed, and %d held, want at most 100 000 of both", owed, held)
		}
	})
}

// A charge that arrives late is owed, also if another key was recorded meanwhile.
func TestLedgerRecordsLateCharges(t *testing.T) {
	w, l := newLedgerWorld(t), algorithms.TokenBucket(10, time.Second)
	w.take(l, 1)
	w.now += 1_000_000 // it has drained
	it := w.charged(algorithms.Check{Key: "usr=1", Limit: l, Cost: 5})
	at := w.now
	w.now += 10
	other := w.charged(algorithms.Check{Key: "usr=2", Limit: l, Cost: 1})
	w.record(other, l.Step(), w.now)
	w.record(it, l.Step(), at)
	if owed := w.debts[it.Key].bringTo(w.now); owed != 5 {
		t.Errorf("%d units are owed, want 5", owed)
	}
}
