// How long calls wait in lanes whose batches are late.

package shared

import (
	"context"
	"encoding"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

var errAnswer = errors.New("WRONGTYPE of this client")

// A server that answers in time, but fewer calls than there are, holds no call
// for much longer than the deadline.
func TestQueueIsNoLongerThanTheDeadline(t *testing.T) {
	const maxBatchWeight = 48 // takes of a batch
	synctest.Test(t, func(t *testing.T) {
		const deadline, took = 50 * time.Millisecond, 45 * time.Millisecond
		r := newRedis(t, redistest.Script(nil, redistest.Wait(took), redistest.Fail(errAnswer)), &Options{Deadline: deadline, InFlight: 2})
		var mu sync.Mutex
		var longest time.Duration
		var answered, unsent int
		var wg sync.WaitGroup
		for _, key := range manyKeys(2_000) {
			wg.Go(func() {
				start := time.Now()
				_, err := algorithms.Allow(context.Background(), r, key, algorithms.TokenBucket(1, time.Hour))
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(start))
				switch {
				case errors.Is(err, errAnswer):
					answered++
				case errors.Is(err, trouble.ErrOverloaded):
					unsent++
				default:
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if longest > 2*deadline {
			t.Errorf("a call took %v, want at most %v", longest, 2*deadline)
		}
		if statsOf(r).Redis.Errors[trouble.Overload] == 0 {
			t.Error("calls that were not sent are not counted")
		}
		// Two batches at a time, sent by 0 and 45 ms.
		if answered < maxBatchWeight || answered > 4*maxBatchWeight || unsent != 2_000-answered {
			t.Errorf("%d calls were answered and %d were not sent, of 2 000", answered, unsent)
		}
	})
}

// A call that waits behind others does not wait for two deadlines, unless
// another call was answered meanwhile.
func TestDeadlineOfCallsThatWait(t *testing.T) {
	for name, tt := range map[string]struct {
		takes [2]time.Duration // of the commands that are in flight before
		want  time.Duration
		err   error
	}{
		"nothing is answered":     {[2]time.Duration{time.Hour, time.Hour}, 40 * time.Millisecond, context.DeadlineExceeded},
		"another one is answered": {[2]time.Duration{time.Hour, 45 * time.Millisecond}, 35 * time.Millisecond, errAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := redistest.Script(nil, redistest.InTurn(redistest.Wait(tt.takes[0]), redistest.Wait(tt.takes[1])), redistest.Fail(errAnswer))
				r := newRedis(t, c, &Options{Deadline: 50 * time.Millisecond})
				ask := func() error {
					_, err := algorithms.Allow(context.Background(), r, "usr=1", algorithms.FixedWindow(9, time.Hour))
					return err
				}
				var others sync.WaitGroup
				defer others.Wait()
				for range tt.takes {
					others.Go(func() { _ = ask() })
					synctest.Wait()
				}
				time.Sleep(10 * time.Millisecond)
				start := time.Now()
				if err := ask(); !errors.Is(err, tt.err) || time.Since(start) != tt.want {
					t.Errorf("got %v after %v, want %v after %v", err, time.Since(start), tt.err, tt.want)
				}
			})
		})
	}
}

// A call without a deadline of its own ends at the limiter's, also while it is
// queued.
func TestDeadlineEndsCalls(t *testing.T) {
	server := redistest.Start(t)
	r := newRedis(t, clientOf(t, server.Addr(), nil), &Options{Deadline: 100 * time.Millisecond, InFlight: 1})
	limit := algorithms.FixedWindow(1_000, 24*time.Hour)
	redistest.Until(t, "a busy machine answers in time", func() bool {
		_, err := algorithms.Allow(t.Context(), r, "usr=1", limit)
		return err == nil
	})
	server.Stop()
	start := time.Now()
	errs, _ := askAll(context.Background(), r, limit, manyKeys(300))
	if waited := time.Since(start); waited > 4*time.Second { // and not five, as the client would
		t.Errorf("300 calls took %v, want them to end by their deadline", waited)
	}
	for key, err := range errs {
		if reason := Reason(err); reason != trouble.Timeout && reason != trouble.Overload { // of calls that come after the first deadlines
			t.Errorf("%s: got %v, want the deadline's error", key, err)
		}
	}
	server.Continue()
	redistest.Until(t, "the server answers again", func() bool {
		_, err := algorithms.Allow(t.Context(), r, "usr=1", limit)
		return err == nil
	})
}

// marshal reads a command as go-redis does to write it.
func marshal(cmd redis.Cmder) {
	for _, arg := range cmd.Args() {
		if m, ok := arg.(encoding.BinaryMarshaler); ok {
			_, _ = m.MarshalBinary()
		}
	}
}

// A script that is answered late has failed for all its callers, once: a Redis
// that is too slow for the deadline must not look well.
func TestLateAnswersAreErrors(t *testing.T) {
	server := redistest.Start(t)
	limit := algorithms.FixedWindow(9, time.Hour)
	take(t, newRedis(t, server.Client(), nil), "usr=0", limit, 1) // it knows the script
	c := redistest.Script(server.Client(), redistest.Deaf(), redistest.Inspect(marshal), redistest.Hold())
	r := newRedis(t, c, &Options{Deadline: 200 * time.Millisecond})
	before := goleak.IgnoreCurrent()
	if _, err := algorithms.Allow(context.Background(), r, "usr=1", limit); Reason(err) != trouble.Timeout {
		t.Fatalf("got %v, want a timeout", err)
	}
	redistest.Until(t, "the error is counted", func() bool { return failuresOf(r) > 0 })
	wantOne := func(when string) {
		t.Helper()
		if got := statsOf(r).Redis.Errors; got[trouble.Timeout] != 1 || failuresOf(r) != 1 {
			t.Errorf("%s: got %v, want one timeout", when, got)
		}
	}
	wantOne("before the answer")
	c.Open()
	redistest.Until(t, "the answer has come", func() bool { return c.Idle() && r.redis.underWay() == 0 })
	goleak.VerifyNone(t, before)
	wantOne("after the answer")
}
