// What a limiter reports to its operator: counts for Stats, and lines of the log.
//
// A change of state is one line. Trouble that goes on has a line once a minute,
// with the number of failures since the last line. Trouble has ended when there
// was none of its kind for ten seconds.
//
// Example: a call fails every 9 s for an hour. The first failure has a line.
// Each seventh failure after it has one, with suppressed=6.
//
// A circuit that opens within a minute after one has closed flaps. The line about its
// next closing waits until no circuit has opened for a minute. Until then the log says
// that Redis is unavailable, and once a minute why.

package shared

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/logwriter"
)

const (
	quietFor  = 10 * time.Second
	lineEvery = time.Minute
)

// A report counts and logs what happens inside a limiter.
type report struct {
	log       *logwriter.Writer
	turnsWait time.Duration         // for lines of other circuits
	cause     atomic.Pointer[error] // of the circuit that opened last
	wrong     atomic.Bool           // the log says that Redis is misconfigured, and not that this has ended
	reply     atomic.Pointer[lateReply]
	guesses   bool      // how many limiters share Redis, until Redis reports it
	alone     time.Time // when a beat last counted one limiter; only beats use it

	mu        sync.Mutex                    // guards the fields below
	errors    map[string]uint64             // by reason
	found     map[string]algorithms.Finding // by code
	opened    time.Time                     // when the first of the open circuits opened
	closed    time.Time                     // when a circuit closed last
	held      *time.Timer                   // runs available; nil if no line has waited
	available func()                        // adds the line about a closing

	failures, misconfigured, scripts, returns steady
}

// A lateReply is the latest reply that came after the deadline of its call.
type lateReply struct {
	at   time.Time
	text string
}

// A steady is one kind of trouble.
type steady struct {
	last, line time.Time // the latest failure, and the latest line
	suppressed int       // failures since that line
}

// newReport returns the report of a limiter whose circuits are many, or one.
func newReport(log *slog.Logger, many bool) *report {
	r := &report{log: logwriter.New(log), errors: make(map[string]uint64), found: make(map[string]algorithms.Finding), alone: time.Now()}
	if many {
		r.turnsWait = logwriter.TurnsFor
	}
	for _, reason := range trouble.Reasons {
		r.errors[reason] = 0
	}
	return r
}

// failed: a script or a command failed with err, or calls that had waited for too
// long were not sent, once for all the calls in it.
func (r *report) failed(err error) {
	t := trouble.Of(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[t.Reason]++
	switch {
	case t.Reason == trouble.Configuration:
		r.wrong.Store(true)
		r.steadily(&r.misconfigured, slog.LevelError, "Redis misconfigured", "error", trouble.Brief(err))
	case t.Effect == trouble.Failure:
		r.steadily(&r.failures, slog.LevelWarn, "Redis failure", "reason", t.Reason, "error", r.explained(trouble.Brief(err)))
	case t.Reason == trouble.Internal && t.Effect == trouble.Success: // Redis answers, so no circuit opens
		r.steadily(&r.scripts, slog.LevelError, "Redis script failure", "error", trouble.Brief(err))
	}
}

// steadily notes a failure of trouble that may go on, and adds its line, if it has one. It requires mu.
func (r *report) steadily(s *steady, level slog.Level, text string, args ...any) {
	now := time.Now()
	begins := now.Sub(s.last) >= quietFor
	s.last = now
	if !begins && now.Sub(s.line) < lineEvery {
		s.suppressed++
		return
	}
	r.log.Add(level, text, append(args, "suppressed", s.suppressed)...)
	s.suppressed, s.line = 0, now
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
	r.steadily(&r.returns, slog.LevelWarn, "lost return of units", "error", trouble.Brief(err))
}

// circuitOpened: Redis, or one of its masters, is bypassed because of err. So
// many circuits are open now.
func (r *report) circuitOpened(open int, err error, excused int64) {
	r.cause.Store(&err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if open == 1 {
		r.opened = time.Now()
	}
	if r.held != nil && r.held.Stop() {
		return // the log still says so
	}
	r.log.AddAfter(r.turnsWait, slog.LevelError, "Redis unavailable", "reason", Reason(err), "error", r.explained(trouble.Brief(err)), "excused", excused)
}

// outageCounts are what the log says of an outage, under the names of outageAttrs.
type outageCounts [5]uint64

var outageAttrs = [len(outageCounts{})]string{"decided_locally", "failed_open", "failed_closed", "returned_late", "returns_lost"}

// circuitClosed: Redis, or one of its masters, decides again. The counts are the
// checks and calls that were decided since the first circuit opened.
func (r *report) circuitClosed(counts outageCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := []any{"after", time.Since(r.opened).Round(time.Millisecond)}
	for i, n := range counts {
		line = append(line, outageAttrs[i], n)
	}
	// If several circuits are open, another one may have closed after the first had opened.
	if healthy := r.opened.Sub(r.closed); healthy >= 0 && healthy < lineEvery {
		r.available = func() { r.log.AddAfter(r.turnsWait, slog.LevelInfo, "Redis available", line...) }
		r.held = time.AfterFunc(lineEvery, r.available)
	} else {
		r.log.AddAfter(r.turnsWait, slog.LevelInfo, "Redis available", append(line, "suppressed", r.failures.suppressed)...)
		r.failures.suppressed = 0
	}
	r.closed = time.Now()
}

// close writes the lines that wait.
func (r *report) close() {
	r.mu.Lock()
	if r.held != nil && r.held.Stop() {
		r.available()
	}
	r.mu.Unlock()
	r.log.Close()
}

// find keeps a finding that holds, and ends it otherwise. A new finding is logged, and
// a finding that has ended counts as new when it returns.
func (r *report) find(holds bool, code, sentence, remedy string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, known := r.found[code]
	if !holds {
		delete(r.found, code)
		return
	}
	if !known {
		f.First = time.Now().UTC()
		r.log.Add(slog.LevelWarn, "configuration problem", "code", code, "problem", sentence, "remedy", remedy)
	}
	f.Code, f.Sentence, f.Remedy = code, sentence, remedy
	r.found[code] = f
}

// late: a reply came so long after its call was sent, and after the deadline.
func (r *report) late(took, deadline time.Duration) {
	text := fmt.Sprintf("Redis answered after %v, and Options.Deadline is %v", took.Round(time.Millisecond), deadline)
	r.reply.Store(&lateReply{time.Now(), text})
}

// explained returns err, and if it is a timeout, also how late Redis has answered in
// the last minute.
func (r *report) explained(err error) error {
	if l := r.reply.Load(); l != nil && time.Since(l.at) < lineEvery && Reason(err) == trouble.Timeout {
		return fmt.Errorf("%w: %s", err, l.text)
	}
	return err
}

func (r *report) addStats(s *algorithms.Stats) {
	if cause := r.cause.Load(); cause != nil {
		s.Fallback.Reason, s.Fallback.Error = Reason(*cause), r.explained(trouble.Brief(*cause)).Error()
	}
	s.Redis.Findings = make(map[string]bool, len(findingCodes))
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Redis.Errors = maps.Clone(r.errors)
	for _, code := range findingCodes {
		_, s.Redis.Findings[code] = r.found[code]
	}
}
