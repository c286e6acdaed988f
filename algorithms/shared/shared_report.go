// What a limiter reports to its operator: counts for Stats, and one log line
// per change of state.

package shared

import (
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
)

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

// failed: a script failed with err, or calls that had waited for too long were
// not sent, once for all the calls in it. The line precedes what callers log about
// requests that they refuse because of err.
func (r *report) failed(err error) {
	r.failedQuietly(err)
	trouble := troubleOf(err)
	if trouble.effect != effectFailure || trouble.reason == reasonConfiguration || r.misconfigured.Load() {
		return
	}
	if first, suppressed := r.firstFailure(time.Now()); first {
		r.log.Warn(logPrefix+"Redis failure", "reason", trouble.reason, "error", brief(err), "suppressed", suppressed)
	}
}

// failedQuietly counts a failure, and logs only what does not resolve itself. It is
// for a failure that no call has met, which is no change of state.
func (r *report) failedQuietly(err error) {
	trouble := troubleOf(err)
	r.errors[trouble.reason].Add(1)
	switch {
	case trouble.reason == reasonConfiguration && !r.misconfigured.Swap(true):
		r.log.Error(logPrefix+"Redis misconfigured", "error", brief(err))
	case trouble.reason == reasonInternal && trouble.effect == effectSuccess && !r.scriptFailed.Swap(true):
		// Redis answers, so no circuit opens and logs it.
		r.log.Error(logPrefix+"Redis script failure", "error", brief(err))
	}
}

// firstFailure reports whether a failure of Redis is the first one for some time.
// It returns the number of failures suppressed before.
func (r *report) firstFailure(now time.Time) (first bool, suppressed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.opened.IsZero() && now.Sub(r.failedLast) >= muteFor
	r.failedLast = now
	if !first {
		r.suppressed++
		return false, 0
	}
	suppressed, r.suppressed = r.suppressed, 0
	return true, suppressed
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
	args := []any{"error", brief(err)}
	if policy != "" {
		args = append(args, "policy", policy)
	}
	if muted > 0 {
		args = append(args, "suppressed", muted)
	}
	r.log.Warn(logPrefix+"failed return of units", args...)
}

// circuitOpened: Redis is bypassed, because of err.
func (r *report) circuitOpened(err error) {
	r.mu.Lock()
	r.opened = time.Now()
	r.mu.Unlock()
	r.log.Error(logPrefix+"Redis unavailable", "reason", Reason(err), "error", brief(err))
}

// circuitClosed: Redis decides again. The counts are the checks and calls that
// were decided during the outage.
func (r *report) circuitClosed(local, open, closed uint64) {
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
