// Reasons and faults, and their texts for operators.

package shared

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/penstock-go/penstock/internal/redistest"
)

// reasons are the reasons that the documentation of Reason has.
var reasons = []string{
	"unavailable", "timeout", "overload", "failover", "capacity", "configuration", "key", "cancelled", "internal",
}

// Every row has one of the reasons, and only misconfigurations come with advice.
func TestReasons(t *testing.T) {
	used := make(map[string]bool)
	for i := range troubles {
		r := &troubles[i]
		used[r.reason] = true
		if !slices.Contains(reasons, r.reason) || i > 0 && (r.fault != nil) != (r.reason == reasonConfiguration) {
			t.Errorf("%q %v: got reason %q and fault %v", r.says, r.is, r.reason, r.fault)
		}
	}
	for _, reason := range reasons {
		if !used[reason] {
			t.Errorf("no error has the reason %q", reason)
		}
	}
	if got := Reason(nil); got != "" {
		t.Errorf("no error: got reason %q, want none", got)
	}
}

// Every fault has a name of its own and advice, and the documentation has it.
func TestFaults(t *testing.T) {
	source, err := os.ReadFile("redis_errors_faults.go")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("../../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(source), "// Fault is ")
	doc, _, _ = strings.Cut(doc, "Fault string")
	documented := strings.FieldsFunc(doc, func(r rune) bool { return !unicode.IsLetter(r) })
	names := make(map[string]*fault)
	for i := range troubles {
		f := troubles[i].fault
		if f == nil {
			continue
		}
		if known := names[f.name]; known != nil && known != f || f.advice == "" {
			t.Errorf("%q: got two faults of this name, or no advice", f.name)
		}
		names[f.name] = f
		if !slices.Contains(documented, f.name) || !strings.Contains(string(runbook), "\n| `"+f.name+"` | ") {
			t.Errorf("%q is not documented in Misconfiguration and in RUNBOOK.md", f.name)
		}
	}
}

func TestNotReady(t *testing.T) {
	err := notReady(said("NOAUTH Authentication required."))
	want := "shared: redis is misconfigured: NOAUTH Authentication required. (" + faultPassword.advice + ")"
	if !errors.Is(err, ErrMisconfigured) || err.Error() != want || Reason(err) != reasonConfiguration {
		t.Errorf("got %q, want %q", err, want)
	}
	hidden := notReady(said("ERR unknown command 'evalsha', with args beginning with: 'f0' '1' 'penstock:{usr=1}:default:tb' "))
	if strings.Contains(hidden.Error(), "usr=1") || !strings.Contains(hidden.Error(), "unknown command 'evalsha'") {
		t.Errorf("got %q, want the command without its arguments", hidden)
	}
	for _, cause := range []error{io.EOF, errTimeout, errOpen} {
		if err := notReady(cause); !errors.Is(err, cause) || errors.Is(err, ErrMisconfigured) || Reason(err) != Reason(cause) {
			t.Errorf("%v: got %v, want no advice", cause, err)
		}
	}
}

// Stats count errors by their reason, and the limiter's own deadline as a
// timeout, whatever the client makes of it.
func TestErrorsAreCountedByReason(t *testing.T) {
	t.Parallel()
	full := newRedis(t, redistest.Start(t, "--maxmemory", "1").Client(), nil)
	if err := full.Allow(t.Context(), checksFor(perDay, "usr=1")); err == nil {
		t.Fatal("a full server made a decision")
	}
	if got := statsOf(full).Redis; got.Errors[reasonCapacity] != 1 || failuresOf(full) != 1 || got.ScriptLoads != 1 {
		t.Errorf("got %+v, want one error of capacity and a script that was sent whole", got)
	}
	slow := newRedis(t, redistest.Script(nil, redistest.Wait(time.Hour)), &Options{Deadline: time.Millisecond})
	if err := slow.Allow(t.Context(), checksFor(perDay, "usr=1")); err == nil {
		t.Fatal("a client that ends with its context made a decision")
	}
	redistest.Until(t, "the timeout is counted", func() bool { return failuresOf(slow) == 1 })
	if got := statsOf(slow).Redis.Errors; got[reasonTimeout] != 1 || len(got) != len(reasons) {
		t.Errorf("got %v, want one timeout and an entry for each reason", got)
	}
}
