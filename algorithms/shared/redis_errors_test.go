// Errors of limiters, for programs and operators.

package shared

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestNotReady(t *testing.T) {
	err := notReady(trouble.ScriptError("NOAUTH Authentication required."))
	want := "shared: redis is misconfigured: NOAUTH Authentication required. (" + trouble.FaultPassword.Advice + ")"
	if !errors.Is(err, ErrMisconfigured) || err.Error() != want || Reason(err) != trouble.Configuration {
		t.Errorf("got %q, want %q", err, want)
	}
	hidden := notReady(trouble.ScriptError("ERR unknown command 'evalsha', with args beginning with: 'f0' '1' 'penstock:{usr=1}:default:tb' "))
	if strings.Contains(hidden.Error(), "usr=1") || !strings.Contains(hidden.Error(), "unknown command 'evalsha'") {
		t.Errorf("got %q, want the command without its arguments", hidden)
	}
	for _, cause := range []error{io.EOF, trouble.ErrTimeout, trouble.ErrOpen} {
		if err := notReady(cause); !errors.Is(err, cause) || errors.Is(err, ErrMisconfigured) || Reason(err) != Reason(cause) {
			t.Errorf("%v: got %v, want no advice", cause, err)
		}
	}
}

// Stats count errors by their reason.
func TestErrorsAreCountedByReason(t *testing.T) {
	t.Parallel()
	full := newRedis(t, redistest.Start(t, "--maxmemory", "1").Client(), nil)
	if err := full.Allow(t.Context(), checksFor(perDay, "usr=1")); err == nil {
		t.Fatal("a full server made a decision")
	}
	if got := statsOf(full).Redis; got.Errors[trouble.Capacity] != 1 || failuresOf(full) != 1 || got.ScriptLoads != 1 {
		t.Errorf("got %+v, want one error of capacity and a script that was sent whole", got)
	}
}

// Stats count the limiter's own deadline as a timeout, whatever the client makes of it.
func TestDeadlineCountsAsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newRedis(t, redistest.Script(nil, redistest.Wait(time.Hour)), &Options{Deadline: time.Millisecond})
		if err := slow.Allow(t.Context(), checksFor(perDay, "usr=1")); err == nil {
			t.Fatal("a client that ends with its context made a decision")
		}
		synctest.Wait()
		if got := statsOf(slow).Redis.Errors; failuresOf(slow) != 1 || got[trouble.Timeout] != 1 || len(got) != len(trouble.Reasons) {
			t.Errorf("got %v, want one timeout and an entry for each reason", got)
		}
	})
}

// A stored key that cannot be read fails its own call, and is counted.
func TestErrorsOfKeysAreCounted(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	r := newRedis(t, client, nil)
	bucket := algorithms.Check{Policy: "default", Key: "usr=1", Limit: algorithms.TokenBucket(1, time.Minute), Cost: 1}
	if err := client.RPush(t.Context(), r.StoredKey(bucket), "not a bucket").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Allow(t.Context(), []algorithms.Check{bucket}); Reason(err) != "key" {
		t.Errorf("got %v, want an error of the key", err)
	}
	if got := statsOf(r).Redis.Errors["key"]; got != 1 {
		t.Errorf("%d errors of keys are counted, want one", got)
	}
}
