// The world of the fallback's tests: a fallback from a fakePrimary to a Memory.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/internal/redistest"
)

// The messages of the log when the circuit opens and closes.
const (
	logUnavailable = logPrefix + "Redis unavailable"
	logAvailable   = logPrefix + "Redis available"
)

// A world is a Limiter of a fallback alone, from a fakePrimary to a Memory, for
// a synctest bubble. With Options.Views, views are above it.
type world struct {
	*Limiter
	t      *testing.T
	shared *fakePrimary
	log    *logRecords
	memory algorithms.Limiter
}

func newWorld(t *testing.T, o *Options) *world {
	t.Helper()
	w := &world{t: t, shared: newFakePrimary(), memory: newMemory()}
	w.start(w.shared, o)
	return w
}

// start begins the fallback from p, which is w.shared or a layer over it, to the
// memory. It ends with the test.
func (w *world) start(p primary, o *Options) {
	w.t.Helper()
	w.log = new(logRecords)
	options := o.withDefaults()
	options.Logger = w.log.logger()
	if err := options.validate(redistest.Script(nil)); err != nil {
		w.t.Fatal(err)
	}
	cs, r := circuit.New(options.Deadline), newReport(options.Logger, false)
	if w.shared.deadline = options.Deadline; w.shared.circuit == nil {
		w.shared.circuit = cs.Add()
	}
	if w.shared.live == 0 {
		w.shared.live = int64(options.Instances)
	}
	w.Limiter = &Limiter{report: r}
	if o == nil || o.Views == 0 {
		options.Views = 0
	}
	w.views = newViews(options.Views, options.Ahead, cs.AnyOpen)
	w.shared.ledger = newLedger(r)
	w.fallback = newFallback(p, w.memory, cs, w.views, w.shared.ledger, &options, r)
	w.views.next, w.top = w.fallback, w.views
	w.t.Cleanup(func() {
		w.fallback.close()
		for _, c := range w.shared.overdueCalls() { // a client gives up in the end
			w.shared.reply(c, errLost)
		}
	})
}

// newMemory returns a Memory whose results do not depend on when it sweeps.
func newMemory() *algorithms.Memory {
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: time.Now})
}

// A fallbackStats is the fallback's part of the Stats.
type fallbackStats = struct {
	Open       int
	Trips      uint64
	Reason     string
	Error      string
	Instances  int
	Local      uint64
	Passed     uint64
	Refused    uint64
	Owed       int
	HandedBack uint64
	Lost       uint64
	Unknown    int64

	Returns     int
	Returned    uint64
	ReturnsLost uint64
}

// stats returns the fallback's part of the Stats.
func (w *world) stats() fallbackStats {
	var s algorithms.Stats
	w.fallback.addStats(&s)
	return s.Fallback
}

// tripsDeadlines is for how many deadlines failures must last.
const tripsDeadlines = 2

// trip opens the circuit, by calls of a key of its own, and leaves the primary
// refusing all calls. It takes twice the default deadline.
func (w *world) trip() {
	w.t.Helper()
	w.shared.fails(errRefused)
	for i := range circuit.TripAfter {
		if i > 0 {
			time.Sleep(tripsDeadlines * defaultDeadline / (circuit.TripAfter - 1))
		}
		w.take("usr=trip", algorithms.FixedWindow(1_000, time.Hour), 1)
	}
	if w.stats().Open == 0 {
		w.t.Fatal("the circuit is closed after five failures in a row")
	}
}

// recoversWithin is how soon the circuit closes once the primary is back, unless
// it has opened again too soon.
const recoversWithin = 2 * time.Second

// recovers ends the trouble, and waits until the circuit is closed.
func (w *world) recovers() {
	w.t.Helper()
	w.shared.fails(nil)
	time.Sleep(recoversWithin)
	if w.stats().Open > 0 {
		w.t.Fatal("the circuit is open 2 s after the primary was back")
	}
}

// take takes units, and returns the decision.
func (w *world) take(key string, l algorithms.Limit, units int64) algorithms.Decision {
	w.t.Helper()
	return take(w.t, w.Limiter, key, l, units)
}

// drain takes single units until one is denied.
func (w *world) drain(key string, l algorithms.Limit) (units int64) {
	w.t.Helper()
	for w.take(key, l, 1).Allowed {
		units++
	}
	return units
}

// used returns what a limiter holds against a key.
func used(t *testing.T, l algorithms.Limiter, key string, limit algorithms.Limit) int64 {
	t.Helper()
	return limit.Burst() - take(t, l, key, limit, 0).Remaining
}

// localUse returns what the memory holds against a key.
func (w *world) localUse(key string, l algorithms.Limit) int64 {
	w.t.Helper()
	return used(w.t, w.memory, key, algorithms.LimitOf(w.fallback.share(l.Step())))
}

// everyAlgorithm has one limit of each algorithm: so many requests per window.
func everyAlgorithm(requests int64, window time.Duration) []algorithms.Limit {
	return []algorithms.Limit{
		algorithms.TokenBucket(requests, window), algorithms.LeakyBucket(requests, window),
		algorithms.SlidingWindowCounter(requests, window), algorithms.SlidingWindowLog(requests, window),
		algorithms.FixedWindow(requests, window),
	}
}
