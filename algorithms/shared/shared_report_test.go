// What a limiter reports to its operator: the lines of the log, and when there is one.

package shared

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/logwriter"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	logFailure       = logPrefix + "Redis failure"
	logMisconfigured = logPrefix + "Redis misconfigured"
	logConfigured    = logPrefix + "Redis configured again"
	logScript        = logPrefix + "Redis script failure"
	logReturn        = logPrefix + "lost return of units"
)

// wantLines reports an error if the log has other messages since the last call.
func (l *logRecords) wantLines(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for _, r := range l.records[l.seen:] {
		got = append(got, r.Message)
	}
	if l.seen = len(l.records); !slices.Equal(got, want) {
		t.Errorf("%s: got the lines %q, want %q", when, got, want)
	}
}

// A script that Redis cannot run opens no circuit. One line of the log says why limits are not shared.
func TestScriptThatCannotRunIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"does not compile": "return return",
		"fails":            "return nil + 1",
		"other reply":      "return 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &logRecords{}
			client := redistest.Script(redistest.Start(t).Client(), redistest.On("eval", redistest.Send("eval", body, 1, "k")))
			l := must(t, client, &Options{Logger: log.logger(), Deadline: time.Minute})
			for range 3 {
				if d := take(t, l, "usr=1", perDay, 1); d.Source != algorithms.Local {
					t.Errorf("got %+v, want a local decision", d)
				}
			}
			_ = l.Close()                                                                            // writes all lines
			got := slices.DeleteFunc(log.messages(), func(m string) bool { return m == logFailure }) // a beat may time out on a busy machine
			if want := []string{logScript}; !slices.Equal(got, want) {
				t.Errorf("got log lines %q, want %q", got, want)
			}
			if err, _ := log.attr(logScript, "error").(error); Reason(err) != trouble.Internal {
				t.Errorf("got error %v, want Redis's", err)
			}
		})
	}
}

// troublesOfLogs are the kinds of trouble that have lines of their own.
var troublesOfLogs = map[string]func(*report){
	logFailure:       func(r *report) { r.failed(trouble.ErrTimeout) },
	logMisconfigured: func(r *report) { r.failed(trouble.ScriptError("NOAUTH Authentication required.")) },
	logScript:        func(r *report) { r.failed(trouble.ErrReply) },
	logReturn:        func(r *report) { r.lostReturn(trouble.ErrTimeout) },
}

// Trouble that goes on has a line once a minute, with the number of failures since the
// last one. Trouble that begins again, after ten seconds without a failure, has a line
// at once.
func TestSteadyTroubleHasALineAMinute(t *testing.T) {
	for name, fail := range troublesOfLogs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &logRecords{}
				r := newReport(log.logger(), false)
				began := time.Now()
				for range 401 { // one each 9 s for an hour
					fail(r)
					time.Sleep(9 * time.Second)
				}
				synctest.Wait()
				for i, rec := range log.records {
					suppressed := log.attrOf(i, "suppressed")
					if want := began.Add(time.Duration(i) * 63 * time.Second); !rec.Time.Equal(want) || rec.Message != name {
						t.Errorf("line %d: got %q at %v, want it at %v", i, rec.Message, rec.Time.Sub(began), want.Sub(began))
					}
					if want := int64(6); i > 0 && suppressed != want || i == 0 && suppressed != int64(0) {
						t.Errorf("line %d: got suppressed=%v, want 6, and 0 in the first line", i, suppressed)
					}
				}
				log.wantLines(t, "in an hour", slices.Repeat([]string{name}, 58)...)
				time.Sleep(quietFor - 9*time.Second)
				fail(r)
				log.wantLines(t, "after ten seconds", name)
				time.Sleep(quietFor - time.Nanosecond)
				fail(r)
				log.wantLines(t, "after almost ten seconds")
			})
		})
	}
}

// No kind of trouble mutes another one, nor the lines about circuits.
func TestTroublesHaveLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), false)
		for range 3 {
			for _, fail := range troublesOfLogs {
				fail(r)
			}
		}
		synctest.Wait()
		for name := range troublesOfLogs {
			if n := log.count(name); n != 1 {
				t.Errorf("%q has %d lines, want 1", name, n)
			}
		}
		r.failed(algorithms.ErrInvalid) // the caller's fault
		r.failed(trouble.ScriptError("WRONGTYPE Operation against a key holding the wrong kind of value"))
		if n := len(log.messages()); n != len(troublesOfLogs) {
			t.Errorf("got %q, want no line about faults of a caller or of a key", log.messages())
		}
	})
}

// An outage has a line for its first failure, its beginning and its end, which counts.
// The next outage has its lines, too.
func TestLinesOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), false)
		for range 2 {
			for range 3 {
				r.failed(trouble.ErrTimeout)
			}
			r.circuitOpened(1, trouble.ErrTimeout, 7)
			time.Sleep(4 * time.Second)
			r.failed(trouble.ErrTimeout)
			r.circuitClosed(outageCounts{1, 2, 3, 4, 5})
			log.wantLines(t, "an outage", logFailure, logUnavailable, logAvailable)
			for key, want := range map[string]any{
				"after": 4 * time.Second, "decided_locally": uint64(1), "failed_open": uint64(2), "failed_closed": uint64(3),
				"returned_late": uint64(4), "returns_lost": uint64(5), "suppressed": int64(3),
			} {
				if got := log.attr(logAvailable, key); got != want {
					t.Errorf("%s: got %v, want %v", key, got, want)
				}
			}
			if reason, excused := log.attr(logUnavailable, "reason"), log.attr(logUnavailable, "excused"); reason != trouble.Timeout || excused != int64(7) {
				t.Errorf("got reason=%v excused=%v, want the cause, and 7 expiries", reason, excused)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A Redis that is full lets a circuit close when a key has expired, and open again. The
// log has a line a minute about it. When it is over, the last line says so.
func TestFlappingCircuitHasALineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), false)
		flap := func(times int) {
			for range times {
				for range 5 {
					r.failed(trouble.ScriptError("OOM command not allowed when used memory > 'maxmemory'."))
				}
				r.circuitOpened(1, trouble.ErrTimeout, 0)
				time.Sleep(time.Second)
				r.circuitClosed(outageCounts{})
				time.Sleep(time.Second / 2)
			}
		}
		flap(2)
		log.wantLines(t, "at first", logFailure, logUnavailable, logAvailable, logUnavailable)
		flap(10 * 40) // in ten minutes
		log.wantLines(t, "in ten minutes", slices.Repeat([]string{logFailure}, 10)...)
		if n := log.attr(logFailure, "suppressed"); n != int64(199) {
			t.Errorf("got suppressed=%v in the last line, want the other failures of its minute", n)
		}
		time.Sleep(lineEvery - time.Second)
		log.wantLines(t, "almost a minute after the last closing")
		time.Sleep(time.Second)
		log.wantLines(t, "a minute after the last closing", logAvailable)
		r.circuitOpened(1, trouble.ErrTimeout, 0)
		log.wantLines(t, "the next outage", logUnavailable)
		time.Sleep(time.Hour)
		r.circuitClosed(outageCounts{})
		log.wantLines(t, "its end", logAvailable)
	})
}

// Circuits of a Cluster that close one after the other do not flap.
func TestClosingCircuitsDoNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), true)
		for i := range 3 {
			r.circuitOpened(1+i, trouble.ErrTimeout, 0)
		}
		for range 3 {
			time.Sleep(2 * logwriter.TurnsFor)
			r.circuitClosed(outageCounts{})
		}
		time.Sleep(logwriter.TurnsFor)
		log.wantLines(t, "three circuits", logUnavailable, logAvailable, logAvailable, logAvailable)
	})
}

// A line about timeouts says how late the last reply was, if that is not long ago.
func TestLinesSayHowLateRedisAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const says = "Redis answered after 80ms, and Options.Deadline is 50ms"
		for _, when := range []struct {
			ago  time.Duration
			err  error
			says bool
		}{{0, trouble.ErrTimeout, true}, {59 * time.Second, trouble.ErrUnsent, true}, {lineEvery, trouble.ErrTimeout, false}, {0, errRefused, false}} {
			log := &logRecords{}
			r := newReport(log.logger(), false)
			r.late(80*time.Millisecond, 50*time.Millisecond)
			time.Sleep(when.ago)
			r.failed(when.err)
			r.circuitOpened(1, when.err, 0)
			synctest.Wait()
			for _, line := range []string{logFailure, logUnavailable} {
				if text := fmt.Sprint(log.attr(line, "error")); strings.Contains(text, says) != when.says {
					t.Errorf("%v, %v after a late reply: got error=%q in %q, want it to say so: %t", when.err, when.ago, text, line, when.says)
				}
			}
		}
	})
}

// The end of a misconfiguration is logged after ten seconds without it. Until then and
// afterwards, no failure is muted by it.
func TestEndOfAMisconfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), false)
		wrong := trouble.ScriptError("NOPERM this user has no permissions to run the 'get' command")
		r.answered()
		log.wantLines(t, "a Redis that was never misconfigured")
		for range 4 {
			r.failed(wrong)
		}
		log.wantLines(t, "a misconfiguration", logMisconfigured)
		time.Sleep(quietFor - time.Nanosecond)
		r.answered()
		r.failed(trouble.ErrTimeout)
		log.wantLines(t, "before ten seconds", logFailure)
		time.Sleep(time.Nanosecond)
		r.answered()
		r.answered()
		log.wantLines(t, "after ten seconds", logConfigured)
		if n := log.attr(logConfigured, "suppressed"); n != int64(3) {
			t.Errorf("got suppressed=%v, want 3", n)
		}
		time.Sleep(quietFor)
		r.failed(trouble.ErrTimeout)
		r.failed(wrong)
		log.wantLines(t, "the next troubles", logFailure, logMisconfigured)
		if n := log.attr(logMisconfigured, "suppressed"); n != int64(0) {
			t.Errorf("got suppressed=%v after the end of a misconfiguration, want 0", n)
		}
		time.Sleep(time.Hour)
		r.failed(trouble.ErrTimeout)
		log.wantLines(t, "a failure of a Redis that is not asked for an hour", logFailure)
		r.answered()
		log.wantLines(t, "the end that shows an hour later", logConfigured)
	})
}

// A password or a permission is missing for a time. The log has the misconfiguration,
// its end, and the failure after it.
func TestMendedMisconfigurations(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for name, tt := range map[string]struct{ wrong, right [][]any }{
		"password": {
			[][]any{{"config", "set", "requirepass", "secret"}, {"client", "kill", "type", "normal"}},
			[][]any{{"auth", "secret"}, {"config", "set", "requirepass", ""}},
		},
		"permission": {
			[][]any{{"acl", "setuser", "limiter", "-get", "-mget"}},
			[][]any{{"acl", "setuser", "limiter", "+get", "+mget"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log := redistest.Start(t), &logRecords{}
			do(t, server.Client(), "acl", "setuser", "limiter", "on", ">secret", "~*", "+@all")
			client := clientOf(t, server.Addr(), func(o *redis.Options) {
				if name == "permission" {
					o.Username, o.Password = "limiter", "secret"
				}
			})
			l := must(t, client, &Options{Logger: log.logger(), Deadline: time.Second, Views: ViewsOff})
			until := func(message string, n int) {
				t.Helper()
				redistest.Until(t, message, func() bool {
					take(t, l, "usr=1", perDay, 0)
					return log.count(message) >= n
				})
			}
			run := func(commands [][]any) {
				conn := clientOf(t, server.Addr(), func(o *redis.Options) { o.PoolSize = 1 }).Conn()
				defer conn.Close()
				for _, command := range commands {
					if err := conn.Do(t.Context(), command...).Err(); err != nil && !errors.Is(err, redis.ErrClosed) && command[0] != "client" {
						t.Fatalf("%v: %v", command, err)
					}
				}
			}
			redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=1", perDay, 0).Source == algorithms.Shared })
			run(tt.wrong)
			until(logMisconfigured, 1)
			run(tt.right)
			until(logConfigured, 1)
			failures := log.count(logFailure)
			server.Kill()
			until(logFailure, failures+1)
		})
	}
}

// Close writes the end of an outage that waits for its line, and writes it once.
func TestCloseWritesTheLineThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger(), false)
		for range 2 {
			r.circuitOpened(1, trouble.ErrTimeout, 0)
			time.Sleep(time.Second)
			r.circuitClosed(outageCounts{})
		}
		log.wantLines(t, "before Close", logUnavailable, logAvailable, logUnavailable)
		r.close()
		log.wantLines(t, "Close", logAvailable)
		time.Sleep(2 * lineEvery)
		log.wantLines(t, "afterwards")
	})
}
