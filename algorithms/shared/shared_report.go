// What a limiter reports to its operator: counts for Stats, and lines of the log.
//
// A change of state is one line. Trouble that goes on has a line once a minute,
// with the number of failures since the last line. Trouble has ended when there
// was none of its kind for ten seconds.
//
// Example: a call fails every 9 s for an hour. The first failure has a line.
// Each seventh failure after it has one, with suppressed=6.

package shared

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/logwriter"
)

const (
	quietFor  = 10 * time.Second
	lineEvery = time.Minute
)

// A report counts and logs what happens inside a limiter.
type report struct {
	log       *logwriter.Writer
	turnsWait time.Duration             // for lines of other circuits
	errors    map[string]*atomic.Uint64 // by reason; the map never changes
	loads     atomic.Uint64             // of the script, after Redis restarted, failed over or flushed its scripts
	wrong     atomic.Bool               // the log says that Redis is misconfigured, and not that this has ended

	mu     sync.Mutex // guards the fields below
	opened time.Time  // when the first of the open circuits opened

	failures, misconfigured, scripts, returns steady
}

// A steady is one kind of trouble.
type steady struct {
	last, line time.Time // the latest failure, and the latest line
	suppressed int       // failures since that line
}

// next notes a failure. It reports whether the failure has a line, and how many
// before it had none.
func (s *steady) next(now time.Time) (suppressed int, ok bool) {
	begins := now.Sub(s.last) >= quietFor
	s.last = now
	if !begins && now.Sub(s.line) < lineEvery {
		s.suppressed++
		return 0, false
	}
	suppressed, s.suppressed, s.line = s.suppressed, 0, now
	return suppressed, true
}

// newReport returns the report of a limiter whose circuits are many, or one.
func newReport(log *slog.Logger, many bool) *report {
	r := &report{log: logwriter.New(log), errors: make(map[string]*atomic.Uint64)}
	if many {
		r.turnsWait = logwriter.TurnsFor
	}
	for i := range troubles { // they have all reasons
		r.errors[troubles[i].reason] = new(atomic.Uint64)
	}
	return r
}

// turned adds a line about a circuit to the log.
func (r *report) turned(level slog.Level, text string, args ...any) {
	r.log.AddAfter(r.turnsWait, level, text, args...)
}

// failed: a script or a command failed with err, or calls that had waited for too
// long were not sent, once for all the calls in it.
func (r *report) failed(err error) {
	t := troubleOf(err)
	r.errors[t.reason].Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t.reason == reasonConfiguration:
		r.wrong.Store(true)
		r.steadily(&r.misconfigured, slog.LevelError, "Redis misconfigured", "error", brief(err))
	case t.effect == effectFailure:
		r.steadily(&r.failures, slog.LevelWarn, "Redis failure", "reason", t.reason, "error", brief(err))
	case t.reason == reasonInternal && t.effect == effectSuccess: // Redis answers, so no circuit opens
		r.steadily(&r.scripts, slog.LevelError, "Redis script failure", "error", brief(err))
	}
}

// steadily adds a line about trouble that may go on. It requires mu.
func (r *report) steadily(s *steady, level slog.Level, text string, args ...any) {
	if suppressed, ok := s.next(time.Now()); ok {
		r.log.Add(level, text, append(args, "suppressed", suppressed)...)
	}
}

// answered: Redis has decided a call. If it was misconfigured before, and calls
// have met no such error for some time, that has ended.
func (r *report) answered() {
	if !r.wrong.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.misconfigured.last) >= quietFor && r.wrong.CompareAndSwap(true, false) {
		r.log.Add(slog.LevelInfo, "Redis configured again", "suppressed", r.misconfigured.suppressed)
		r.misconfigured = steady{}
	}
}

// lostReturn: units may stay charged, because their Return failed with err.
func (r *report) lostReturn(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steadily(&r.returns, slog.LevelWarn, "lost return of units", "error", brief(err))
}

// circuitOpened: Redis, or one of its masters, is bypassed because of err. So
// many circuits are open now.
func (r *report) circuitOpened(open int, err error, excused int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if open == 1 {
		r.opened = time.Now()
	}
	r.turned(slog.LevelError, "Redis unavailable", "reason", Reason(err), "error", brief(err), "excused", excused)
}

// outageCounts are what the log says of an outage, under the names of outageAttrs.
type outageCounts [5]uint64

var outageAttrs = [len(outageCounts{})]string{"decided_locally", "failed_open", "failed_closed", "returned_late", "returns_lost"}

// circuitClosed: Redis, or one of its masters, decides again. The counts are the
// checks and calls that were decided since the first circuit opened.
func (r *report) circuitClosed(counts outageCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	args := []any{"after", time.Since(r.opened).Round(time.Millisecond)}
	for i, n := range counts {
		args = append(args, outageAttrs[i], n)
	}
	r.turned(slog.LevelInfo, "Redis available", append(args, "suppressed", r.failures.suppressed)...)
	r.failures = steady{}
}

func (r *report) addStats(s *algorithms.Stats) {
	s.Redis.Errors = make(map[string]uint64, len(r.errors))
	for reason, n := range r.errors {
		s.Redis.Errors[reason] = n.Load()
	}
	s.Redis.ScriptLoads = r.loads.Load()
}
