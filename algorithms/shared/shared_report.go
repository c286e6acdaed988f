// What a limiter reports to its operator: counts for Stats, and one log line
// per change of state.
//
// The log has a cause before its effects, such as the line of package ratelimit
// about a refused request. But a handler of logs may be slow, so no line is
// written under a mutex. A line has three steps:
//
//	announce  under a mutex, before any call can meet the cause
//	write     without a mutex
//	await     by each call that is refused, until all announced lines are written
//
// Example: a batch expires at 50 ms and announces "Redis failure". Its callers
// wake at once. A call that fails locally goes on. A call that fails closed
// awaits the line, which takes 3 ms, and is refused at 53 ms. Another batch that
// expires at 51 ms has no line of its own. Its callers await the same line.
//
// A handler that hangs must not hold calls. So calls await lines only for the
// first second after an announcement, and the order is lost where a handler
// takes longer.

package shared

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A report counts and logs what happens inside a limiter.
type report struct {
	log           *slog.Logger
	errors        map[string]*atomic.Uint64 // by reason; the map never changes
	loads         atomic.Uint64
	returnsFailed atomic.Uint64
	misconfigured atomic.Bool // and it was logged
	scriptFailed  atomic.Bool // and it was logged

	unwritten atomic.Pointer[unwritten] // the announced lines; nil: none; changes only under mu

	mu         sync.Mutex // guards the fields below
	opened     time.Time  // when Redis became unavailable; zero while it is available
	failedLast time.Time  // when Redis failed last
	suppressed int        // failures of Redis since the last line that counts them
	quiet      time.Time  // no failed return is logged before
	muted      int        // failed returns since then
}

const (
	// logPrefix begins every line, as in package ratelimit.
	logPrefix = "ratelimit: "
	// muteFor is the least time between two lines about failed returns, and the
	// time without failures after which a failure of Redis is logged again.
	muteFor = 10 * time.Second
	// awaitFor is how long calls await an announced line.
	awaitFor = time.Second
)

// A line is announced, and the code that holds it must write it. The zero line
// is none.
type line struct {
	report *report
	level  slog.Level
	text   string
	args   []any
}

// unwritten is the announced lines that are not written.
type unwritten struct {
	lines int           // guarded by the report's mu
	until time.Time     // when calls stop awaiting them
	done  chan struct{} // closed once all are written
}

func newReport(log *slog.Logger) *report {
	r := &report{log: log, errors: make(map[string]*atomic.Uint64)}
	for _, reason := range reasons {
		r.errors[reason] = new(atomic.Uint64)
	}
	return r
}

// scriptLoaded: Redis did not know the script (it restarted, failed over or
// flushed its scripts), and received it whole.
func (r *report) scriptLoaded() { r.loads.Add(1) }

// announce returns a line that calls await until it is written. It requires mu.
func (r *report) announce(level slog.Level, text string, args ...any) line {
	u := r.unwritten.Load()
	if u == nil {
		u = &unwritten{until: time.Now().Add(awaitFor), done: make(chan struct{})}
		r.unwritten.Store(u)
	}
	u.lines++
	return line{r, level, logPrefix + text, args}
}

// write writes a line. The caller must hold no mutex.
func (l line) write() {
	if r := l.report; r != nil {
		defer r.written()
		r.log.Log(context.Background(), l.level, l.text, l.args...)
	}
}

func (r *report) written() {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.unwritten.Load()
	if u.lines--; u.lines == 0 {
		r.unwritten.Store(nil)
		close(u.done)
	}
}

// await waits until all announced lines are written, but no longer than
// awaitFor after the first announcement, or until ctx ends.
func (r *report) await(ctx context.Context) {
	u := r.unwritten.Load()
	if u == nil {
		return
	}
	timer := time.NewTimer(time.Until(u.until))
	defer timer.Stop()
	select {
	case <-u.done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// failed: a script failed with err, or calls that had waited for too long were
// not sent, once for all the calls in it. It returns the line to write, if any.
func (r *report) failed(err error) line {
	if l := r.failedQuietly(err); l.report != nil {
		return l
	}
	return r.failure(err, 1)
}

// missed: the deadline of a call has passed before the deadline of its batch. If
// the batch fails as well, that counts.
func (r *report) missed(err error) line { return r.failure(err, 0) }

// failure returns the line about a failure of Redis, if it is the first one for
// some time. Otherwise it counts as so many suppressed failures.
func (r *report) failure(err error, suppressed int) line {
	trouble := troubleOf(err)
	if trouble.effect != effectFailure || trouble.reason == reasonConfiguration {
		return line{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.misconfigured.Load() {
		return line{}
	}
	now := time.Now()
	first := r.opened.IsZero() && now.Sub(r.failedLast) >= muteFor
	r.failedLast = now
	if !first {
		r.suppressed += suppressed
		return line{}
	}
	suppressed, r.suppressed = r.suppressed, 0
	return r.announce(slog.LevelWarn, "Redis failure", "reason", trouble.reason, "error", brief(err), "suppressed", suppressed)
}

// failedQuietly counts a failure. It returns a line only for what does not
// resolve itself. It is for a failure that no call has met, which is no change
// of state.
func (r *report) failedQuietly(err error) line {
	trouble := troubleOf(err)
	r.errors[trouble.reason].Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case trouble.reason == reasonConfiguration && !r.misconfigured.Swap(true):
		return r.announce(slog.LevelError, "Redis misconfigured", "error", brief(err))
	case trouble.reason == reasonInternal && trouble.effect == effectSuccess && !r.scriptFailed.Swap(true):
		// Redis answers, so no circuit opens and logs it.
		return r.announce(slog.LevelError, "Redis script failure", "error", brief(err))
	}
	return line{}
}

// returnFailed: units of a policy ("" if of several) could not be given back.
func (r *report) returnFailed(policy string, err error) {
	r.returnsFailed.Add(1)
	now := time.Now()
	r.mu.Lock()
	if now.Before(r.quiet) {
		r.muted++
		r.mu.Unlock()
		return
	}
	muted := r.muted
	r.quiet, r.muted = now.Add(muteFor), 0
	r.mu.Unlock()
	r.await(context.Background()) // the cause
	args := []any{"error", brief(err)}
	if policy != "" {
		args = append(args, "policy", policy)
	}
	if muted > 0 {
		args = append(args, "suppressed", muted)
	}
	r.log.Warn(logPrefix+"failed return of units", args...)
}

// circuitOpened: Redis is bypassed, because of err. It returns the line to write.
func (r *report) circuitOpened(err error) line {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = time.Now()
	return r.announce(slog.LevelError, "Redis unavailable", "reason", Reason(err), "error", brief(err))
}

// circuitClosed: Redis decides again. The counts are the checks and calls that
// were decided during the outage.
func (r *report) circuitClosed(local, open, closed uint64) {
	r.await(context.Background()) // the line of circuitOpened
	r.mu.Lock()
	opened, suppressed := r.opened, r.suppressed
	r.opened, r.failedLast, r.suppressed = time.Time{}, time.Time{}, 0
	r.mu.Unlock()
	r.misconfigured.Store(false)
	r.scriptFailed.Store(false)
	r.log.Info(logPrefix+"Redis available", "after", time.Since(opened).Round(time.Millisecond),
		"decided_locally", local, "failed_open", open, "failed_closed", closed, "suppressed", suppressed)
}

// found: a finding was made for the first time.
func (r *report) found(f algorithms.Finding) {
	r.log.Warn(logPrefix+"configuration problem", "code", f.Code, "problem", f.Sentence, "remedy", f.Remedy)
}

func (r *report) addStats(s *algorithms.Stats) {
	s.Redis.Errors = make(map[string]uint64, len(r.errors))
	for reason, n := range r.errors {
		s.Redis.Errors[reason] = n.Load()
	}
	s.Redis.ScriptLoads = r.loads.Load()
	s.Redis.ReturnsFailed = r.returnsFailed.Load()
}
