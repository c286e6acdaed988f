// The order of the log: causes before effects, whatever the handler does.

package shared

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const logFailure = logPrefix + "Redis failure"

// outages are the ways in which a server goes away.
var outages = map[string]func(*redistest.Server){
	"stopped": (*redistest.Server).Stop,
	"killed":  (*redistest.Server).Kill,
}

// impatient returns a client whose calls fail at once if they cannot connect.
func impatient(t *testing.T, server *redistest.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A slowHandler records each line after a delay.
type slowHandler struct {
	logHandler
	delay func()
}

func (h slowHandler) Handle(ctx context.Context, r slog.Record) error {
	h.delay()
	return h.logHandler.Handle(ctx, r)
}

func (l *logRecords) slowLogger(delay func()) *slog.Logger {
	return slog.New(slowHandler{logHandler{l}, delay})
}

// wantCause reports an error if the log does not have the cause of a refusal.
func (l *logRecords) wantCause(t *testing.T, err error) {
	t.Helper()
	want := logFailure
	if errors.Is(err, errOpen) {
		want = logUnavailable
	}
	if got := l.messages(); !slices.Contains(got, want) {
		t.Errorf("a call was refused with %q, and the log has only %q, want %q", err, got, want)
	}
}

// When a call is refused, the log has the cause: the failure of Redis, and that the
// circuit is open.
func TestCauseIsLoggedBeforeRefusals(t *testing.T) {
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			server, log := redistest.Start(t), &logRecords{}
			l := must(t, impatient(t, server), &Options{
				Deadline: 50 * time.Millisecond, Logger: log.slowLogger(func() { time.Sleep(100 * time.Millisecond) }),
			})
			redistest.Until(t, "Redis decides", func() bool { return l.Ready(t.Context()) == nil })
			begin(server)
			var refused atomic.Int64
			var callers sync.WaitGroup
			for range 32 {
				callers.Go(func() {
					var err error
					for !errors.Is(err, errOpen) && t.Context().Err() == nil {
						check := algorithms.Check{Policy: "p", Key: "usr=1", Limit: perDay, Cost: 1, Fail: algorithms.FailClosed}
						if err = l.Allow(t.Context(), []algorithms.Check{check}); err != nil {
							refused.Add(1)
							log.wantCause(t, err)
						}
					}
				})
			}
			callers.Wait()
			if err := l.Ready(t.Context()); err == nil {
				t.Error("got that Redis is ready")
			}
			t.Logf("%d calls were refused", refused.Load())
		})
	}
}

// A call of several slots gives up before its last batch expires.
func TestCauseIsLoggedBeforeRefusalsInSeveralSlots(t *testing.T) {
	client, log := redistest.StartCluster(t).Client(), &logRecords{}
	keys := slotMates(2)
	hook := redistest.Script(nil, redistest.On("{"+keys[0]+"}", redistest.Wait(300*time.Millisecond)), redistest.On("{"+keys[1]+"}", redistest.Hold()))
	client.AddHook(hook)
	l := must(t, client, &Options{Deadline: time.Second, Logger: log.logger()})
	checks := checksFor(perDay, keys...)
	for i := range checks {
		checks[i].Fail = algorithms.FailClosed
	}
	err := l.Allow(t.Context(), checks)
	if !errors.Is(err, errPartly) || !errors.Is(err, algorithms.ErrUnavailable) {
		t.Errorf("got %v, want that a later slot failed", err)
	}
	log.wantCause(t, err)
	hook.Open()
	redistest.Until(t, "the client has returned", hook.Idle)
}

// A handler that hangs holds no call that is admitted locally.
func TestHangingHandlerHoldsNoAdmission(t *testing.T) {
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			server, log := redistest.Start(t), &logRecords{}
			hangs, hung := make(chan struct{}), make(chan struct{}, 1)
			l := must(t, impatient(t, server), &Options{Deadline: 50 * time.Millisecond, Logger: log.slowLogger(func() {
				select {
				case hung <- struct{}{}:
				default:
				}
				<-hangs
			})})
			defer close(hangs)
			redistest.Until(t, "Redis decides", func() bool { return l.Ready(t.Context()) == nil })
			begin(server)
			var admitted atomic.Int64
			for range 8 {
				go func() {
					if d, err := algorithms.Allow(t.Context(), l, "usr=1", perDay); err == nil && d.Source == algorithms.Local {
						admitted.Add(1)
					}
				}()
			}
			<-hung
			redistest.Until(t, "all calls are decided", func() bool { return admitted.Load() == 8 })
			if got := log.messages(); len(got) != 0 {
				t.Errorf("got log lines %q, want none yet", got)
			}
		})
	}
}

// Refused calls await a line for a second at most, also a line that another batch
// has announced.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int64
		log, release := &logRecords{}, make(chan struct{})
		r := newReport(log.slowLogger(func() { <-release }))
		await := func(ctx context.Context) {
			go func() {
				r.await(ctx)
				done.Add(1)
			}()
		}
		want := func(when string, n int64) {
			t.Helper()
			synctest.Wait()
			if got := done.Load(); got != n {
				t.Errorf("%s: %d calls have gone on, want %d", when, got, n)
			}
		}
		await(t.Context())
		want("without a line", 1)
		r.failed(errTimeout)
		await(t.Context())
		r.failed(errTimeout) // of another batch, without a line
		await(t.Context())
		want("before the line is written", 1)
		r.circuitOpened(errTimeout)
		release <- struct{}{}
		want("before the other line is written", 1)
		release <- struct{}{}
		want("afterwards", 3)
		if got, want := log.messages(), []string{logFailure, logUnavailable}; !slices.Equal(got, want) {
			t.Errorf("got log lines %q, want %q", got, want)
		}

		ctx, cancel := context.WithCancel(t.Context())
		r.circuitOpened(errTimeout)
		await(ctx)
		await(t.Context())
		cancel()
		want("after the end of a context", 4)
		time.Sleep(awaitFor - time.Nanosecond)
		want("shortly before the bound", 4)
		time.Sleep(time.Nanosecond)
		want("at the bound", 5)
		await(t.Context())
		want("after the bound", 6)
		release <- struct{}{}
	})
}

// A circuit that opens again at once has its lines in order, and counts from its
// second opening.
func TestLinesOfAFlappingCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		f := &fallback{circuit: newCircuit(time.Second), report: newReport(log.slowLogger(func() { time.Sleep(time.Minute) }))}
		for _, n := range []uint64{5, 2} {
			f.turned(true)
			f.stats.local.Add(n)
			time.Sleep(time.Duration(n) * time.Second)
			f.turned(false)
		}
		time.Sleep(time.Hour)
		if got, want := log.messages(), []string{logUnavailable, logAvailable, logUnavailable, logAvailable}; !slices.Equal(got, want) {
			t.Errorf("got log lines %q, want %q", got, want)
		}
		if after, local := log.attr(logAvailable, "after"), log.attr(logAvailable, "decided_locally"); after != 2*time.Second || local != uint64(2) {
			t.Errorf("got after=%v decided_locally=%v of the second outage, want 2s and 2", after, local)
		}
	})
}

// Calls of Ready that overlap mute the log only while they ask Redis.
func TestReadyMutesTheLogForItsProbesOnly(t *testing.T) {
	client, log := redistest.Start(t).Client(), &logRecords{}
	hook := redistest.Script(nil, redistest.Hold())
	client.AddHook(hook)
	t.Cleanup(hook.Open)
	l := must(t, client, &Options{Deadline: 50 * time.Millisecond, Logger: log.logger()})
	var first, second sync.WaitGroup
	ready := func(ctx context.Context) {
		if l.redis.ready(ctx) == nil {
			t.Error("got that Redis is ready")
		}
	}
	ctx, end := context.WithCancel(t.Context())
	first.Go(func() { ready(ctx) })
	redistest.Until(t, "the first Ready asks", func() bool { return l.report.readies.Load() == 1 })
	second.Go(func() { ready(t.Context()) })
	redistest.Until(t, "both have asked", func() bool { return l.report.readies.Load() != 1 })
	end()
	first.Wait()
	second.Wait()
	if l.report.readies.Load() != 0 || l.report.misconfigured.Load() {
		t.Errorf("got %d calls of Ready and misconfigured=%v after both, want none", l.report.readies.Load(), l.report.misconfigured.Load())
	}
	l.report.failed(errTimeout)
	l.report.await(t.Context())
	if got := log.messages(); !slices.Contains(got, logFailure) {
		t.Errorf("got log lines %q, want the next failure among them", got)
	}
}
