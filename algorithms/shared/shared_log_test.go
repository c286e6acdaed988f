// How lines of the log are written: in order, with the instants of their causes, whatever the handler does.

package shared

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/logwriter"
	"github.com/penstock-go/penstock/internal/redistest"
)

// outages are the ways in which a server goes away.
var outages = map[string]func(*redistest.Server){
	"stopped": (*redistest.Server).Stop,
	"killed":  (*redistest.Server).Kill,
}

// impatient returns a client whose calls fail at once if they cannot connect.
func impatient(t *testing.T, server *redistest.Server) *redis.Client {
	return clientOf(t, server.Addr(), func(o *redis.Options) { o.DialerRetries = 1 })
}

// A slowHandler records each line after a call.
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

// A handler that hangs holds no call, whether it is admitted or refused.
func TestHangingHandlerHoldsNoCall(t *testing.T) {
	t.Parallel()
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
			var decided atomic.Int64
			for i := range 8 {
				go func() {
					check := algorithms.Check{Policy: "p", Key: "usr=1", Limit: perDay, Cost: 1, Fail: algorithms.FailClosed}
					if i%2 == 0 {
						check.Fail = algorithms.FailLocal
					}
					for range 10 {
						_ = l.Allow(context.Background(), []algorithms.Check{check})
					}
					decided.Add(1)
				}()
			}
			<-hung
			redistest.Until(t, "all calls are decided", func() bool { return decided.Load() == 8 })
			if got := log.messages(); len(got) != 0 {
				t.Errorf("got log lines %q, want none yet", got)
			}
		})
	}
}

// A line carries the instant of its cause, however late it is written, and lines keep
// the order of their causes.
func TestLinesOfASlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.slowLogger(func() { time.Sleep(time.Minute) }), false)
		began := time.Now()
		for range 2 {
			r.failed(trouble.ErrTimeout)
			r.circuitOpened(1, trouble.ErrTimeout, 0)
			time.Sleep(5 * time.Second)
			r.circuitClosed(outageCounts{})
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		log.wantLines(t, "an hour later", logFailure, logUnavailable, logAvailable, logFailure, logUnavailable, logAvailable)
		for i, want := range []time.Duration{0, 0, 5, 65, 65, 70} {
			if got := log.records[i].Time.Sub(began); got != want*time.Second {
				t.Errorf("line %d: got the instant %v, want %v", i, got, want*time.Second)
			}
		}
	})
}

// A panickingHandler panics for some messages, and records the others.
type panickingHandler struct {
	logHandler
	enabled, handle string
}

func (h panickingHandler) Enabled(context.Context, slog.Level) bool {
	if h.enabled != "" {
		panic(h.enabled)
	}
	return true
}

func (h panickingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.handle {
		panic(h.handle)
	}
	return h.logHandler.Handle(ctx, r)
}

// A handler that panics does not end the process. It loses the line, and receives the
// next ones.
func TestPanickingHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(slog.New(panickingHandler{logHandler: logHandler{log}, handle: logFailure}), false)
		r.failed(trouble.ErrTimeout)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		log.wantLines(t, "one line panics", logUnavailable)
		r.circuitClosed(outageCounts{})
		log.wantLines(t, "later", logAvailable)

		r = newReport(slog.New(panickingHandler{logHandler: logHandler{log}, enabled: "for all"}), false)
		r.failed(trouble.ErrTimeout)
		log.wantLines(t, "all lines panic")
		r.log.Close()
	})
}

// In a Cluster, circuits that turn within a second share a line, with their number and
// the instant of the first. On one server a line waits for nothing.
func TestCircuitsShareALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), true)
		began := time.Now()
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		time.Sleep(300 * time.Millisecond)
		r.lostReturn(trouble.ErrTimeout) // another line
		r.circuitOpened(2, trouble.ErrUnsent, 0)
		time.Sleep(700*time.Millisecond - time.Nanosecond)
		r.circuitOpened(3, trouble.ErrTimeout, 0)
		log.wantLines(t, "before a second")
		time.Sleep(time.Nanosecond)
		log.wantLines(t, "after a second", logUnavailable, logReturn)
		if n, at := log.attrOf(0, "circuits"), log.records[0].Time; n != int64(3) || !at.Equal(began) {
			t.Errorf("got circuits=%v after %v, want 3 at once", n, at.Sub(began))
		}

		one := newReport(log.logger(), false)
		one.circuitOpened(1, trouble.ErrTimeout, 0)
		log.wantLines(t, "one server, at once", logUnavailable)
		if n := log.attr(logUnavailable, "circuits"); n != nil {
			t.Errorf("got circuits=%v of one server, want no such attribute", n)
		}
	})
}

// A circuit that opens, closes and opens again within a second has three lines. So the
// last one tells the truth.
func TestLastLineIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), true)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		r.circuitClosed(outageCounts{})
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		r.circuitOpened(2, trouble.ErrTimeout, 0)
		r.log.Close()
		log.wantLines(t, "at close", logUnavailable, logAvailable, logUnavailable)
		if n := log.attrOf(2, "circuits"); n != int64(2) {
			t.Errorf("got circuits=%v in the last line, want 2", n)
		}
	})
}

// Close waits for the lines that wait for other circuits, and for some time for a
// handler that hangs.
func TestCloseWritesLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), true)
		r.log.Close()
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		time.Sleep(logwriter.TurnsFor)
		log.wantLines(t, "after close", logUnavailable)

		r = newReport(log.logger(), true)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		r.log.Close()
		r.log.Close()
		log.wantLines(t, "at close", logUnavailable)
		start := time.Now()

		hangs := make(chan struct{})
		r = newReport(log.slowLogger(func() { <-hangs }), true)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		if r.log.Close(); time.Since(start) != closesFor {
			t.Errorf("close took %v with a handler that hangs, want %v", time.Since(start), closesFor)
		}
		close(hangs)
		log.wantLines(t, "a handler that has hung", logUnavailable)
	})
}

// A handler that hangs holds a bounded number of lines. The next line says how many
// were dropped.
func TestLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, hangs := &logRecords{}, make(chan struct{})
		r := newReport(log.slowLogger(func() { <-hangs }), false)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		synctest.Wait() // the handler hangs with this line, and all others wait
		for range maxLines {
			r.log.Add(slog.LevelInfo, "Redis available")
			r.log.Add(slog.LevelInfo, "Redis unavailable")
		}
		close(hangs)
		synctest.Wait()
		if n := len(log.messages()); n != 1+maxLines {
			t.Errorf("%d lines are written, want the line that hung and %d", n, maxLines)
		}
		if got := log.messages()[:2]; !slices.Equal(got, []string{logUnavailable, logAvailable}) {
			t.Errorf("got %q, want the first lines", got)
		}
		for _, want := range []any{int64(maxLines), nil} {
			r.circuitOpened(1, trouble.ErrTimeout, 0)
			synctest.Wait()
			if n := log.attr(logUnavailable, "dropped"); n != want {
				t.Errorf("the next line says dropped=%v, want %v", n, want)
			}
		}
	})
}
