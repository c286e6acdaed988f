// What a limiter reports to its operator: counts for Stats, and one log line
// per change of state.
//
// The log has a cause before its effects, such as the line of package ratelimit
// about a refused request. But a handler of logs may be slow, and causes are
// found under mutexes. So a line has three steps:
//
//	announce  under a mutex, before any call can meet the cause
//	write     by one goroutine, in the order of the announcements
//	await     by each call that is refused, until all announced lines are written
//
// Example: a batch expires at 50 ms and announces "Redis failure". Its callers
// wake at once. A call that fails locally goes on. A call that fails closed
// awaits the line, which takes 3 ms, and is refused at 53 ms. Another batch that
// expires at 51 ms has no line of its own. Its callers await the same line.
//
// A handler that hangs must not hold calls. So calls await lines only for a
// second after the latest announcement, and the order is lost where a handler
// takes longer. The goroutine ends when all lines are written.

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

	// readies counts the calls of Ready that ask Redis. They return a
	// misconfiguration to their callers, so the log need not have it, too.
	readies atomic.Int32
	writing atomic.Bool // some lines are not written; changes only under mu

	mu         sync.Mutex    // guards the fields below
	lines      []line        // announced and not yet taken by the goroutine that writes
	written    chan struct{} // closed once all are written
	until      time.Time     // when calls stop awaiting them
	opened     time.Time     // when Redis became unavailable; zero while it is available
	failedLast time.Time     // when Redis failed last
	suppressed int           // failures of Redis since the last line that counts them
	quiet      time.Time     // no failed return is logged before
	muted      int           // failed returns since then
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

type line struct {
	level slog.Level
	text  string
	args  []any
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

// announce lets a line be written. It requires mu.
func (r *report) announce(level slog.Level, text string, args ...any) {
	r.lines, r.until = append(r.lines, line{level, logPrefix + text, args}), time.Now().Add(awaitFor)
	if !r.writing.Swap(true) {
		r.written = make(chan struct{})
		go r.write()
	}
}

// write writes the announced lines, until there are no more.
func (r *report) write() {
	for {
		r.mu.Lock()
		if len(r.lines) == 0 {
			r.writing.Store(false)
			close(r.written)
			r.mu.Unlock()
			return
		}
		log, next := r.log, r.lines[0]
		r.lines = r.lines[1:]
		r.mu.Unlock()
		log.Log(context.Background(), next.level, next.text, next.args...)
	}
}

// await waits until all announced lines are written, but no longer than awaitFor
// after the latest announcement, or until ctx ends.
func (r *report) await(ctx context.Context) {
	if !r.writing.Load() {
		return
	}
	r.mu.Lock()
	written, until := r.written, r.until
	r.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-written:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// failed: a script failed with err, or calls that had waited for too long were
// not sent, once for all the calls in it.
func (r *report) failed(err error) {
	r.failedQuietly(err)
	r.failure(err, 1)
}

// missed: the deadline of a call has passed before the deadline of its batch. If
// the batch fails as well, that counts.
func (r *report) missed(err error) { r.failure(err, 0) }

// failure announces the line about a failure of Redis, if it is the first one for
// some time. Otherwise it counts as so many suppressed failures.
func (r *report) failure(err error, suppressed int) {
	trouble := troubleOf(err)
	if trouble.effect != effectFailure || trouble.reason == reasonConfiguration {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.misconfigured.Load() || r.readies.Load() > 0 {
		return
	}
	now := time.Now()
	first := r.opened.IsZero() && now.Sub(r.failedLast) >= muteFor
	r.failedLast = now
	if !first {
		r.suppressed += suppressed
		return
	}
	suppressed, r.suppressed = r.suppressed, 0
	r.announce(slog.LevelWarn, "Redis failure", "reason", trouble.reason, "error", brief(err), "suppressed", suppressed)
}

// failedQuietly counts a failure. It announces a line only for what does not
// resolve itself. It is for a failure that no call has met, which is no change
// of state.
func (r *report) failedQuietly(err error) {
	trouble := troubleOf(err)
	r.errors[trouble.reason].Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case trouble.reason == reasonConfiguration && r.readies.Load() == 0 && !r.misconfigured.Swap(true):
		r.announce(slog.LevelError, "Redis misconfigured", "error", brief(err))
	case trouble.reason == reasonInternal && trouble.effect == effectSuccess && !r.scriptFailed.Swap(true):
		// Redis answers, so no circuit opens and logs it.
		r.announce(slog.LevelError, "Redis script failure", "error", brief(err))
	}
}

// returnFailed: units of a policy ("" if of several) could not be given back.
func (r *report) returnFailed(policy string, err error) {
	r.returnsFailed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.quiet) {
		r.muted++
		return
	}
	args := []any{"error", brief(err)}
	if policy != "" {
		args = append(args, "policy", policy)
	}
	if r.muted > 0 {
		args = append(args, "suppressed", r.muted)
	}
	r.quiet, r.muted = now.Add(muteFor), 0
	r.announce(slog.LevelWarn, "failed return of units", args...)
}

// circuitOpened: Redis is bypassed, because of err.
func (r *report) circuitOpened(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = time.Now()
	r.announce(slog.LevelError, "Redis unavailable", "reason", Reason(err), "error", brief(err))
}

// circuitClosed: Redis decides again. The counts are the checks and calls that
// were decided during the outage.
func (r *report) circuitClosed(local, open, closed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce(slog.LevelInfo, "Redis available", "after", time.Since(r.opened).Round(time.Millisecond),
		"decided_locally", local, "failed_open", open, "failed_closed", closed, "suppressed", r.suppressed)
	r.opened, r.failedLast, r.suppressed = time.Time{}, time.Time{}, 0
	r.misconfigured.Store(false)
	r.scriptFailed.Store(false)
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
