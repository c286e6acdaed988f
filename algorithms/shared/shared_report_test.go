package shared

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

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
			want := []string{logPrefix + "Redis script failure"}
			redistest.Until(t, "there is a line", func() bool { return len(log.messages()) > 0 })
			if got := log.messages(); !slices.Equal(got, want) {
				t.Errorf("got log lines %q, want %q", got, want)
			}
			if err, _ := log.attr(want[0], "error").(error); Reason(err) != reasonInternal {
				t.Errorf("got error %v, want Redis's", err)
			}
		})
	}
}

// The first failure of Redis is logged before its consequences, and the others are counted.
func TestFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logRecords{}
		r := newReport(log.logger())
		fail := func(n int) {
			for range n {
				r.failed(errTimeout)
			}
		}
		const failure = logPrefix + "Redis failure"
		fail(3) // one line, and two failures without
		r.circuitOpened(errTimeout)
		time.Sleep(muteFor)
		fail(2) // while the circuit is open
		r.circuitClosed(1, 2, 3)
		synctest.Wait()
		if got, want := log.messages(), []string{failure, logUnavailable, logAvailable}; !slices.Equal(got, want) {
			t.Fatalf("got log lines %q, want %q", got, want)
		}
		for key, want := range map[string]any{
			"after": muteFor, "decided_locally": uint64(1), "failed_open": uint64(2), "failed_closed": uint64(3), "suppressed": int64(4),
		} {
			if got := log.attr(logAvailable, key); got != want {
				t.Errorf("%s: got %v, want %v", key, got, want)
			}
		}
		fail(2) // the next trouble
		time.Sleep(muteFor - time.Nanosecond)
		fail(1)
		time.Sleep(muteFor)
		fail(1)
		synctest.Wait()
		if got, want := log.messages()[3:], []string{failure, failure}; !slices.Equal(got, want) || log.attr(failure, "suppressed") != int64(2) {
			t.Errorf("got %q with suppressed=%v, want %q with 2", got, log.attr(failure, "suppressed"), want)
		}
		r.misconfigured.Store(true) // and so the log has the cause
		time.Sleep(muteFor)
		fail(1)
		if got := log.messages(); len(got) != 5 {
			t.Errorf("got log lines %q after a misconfiguration, want no other", got)
		}
	})
}
