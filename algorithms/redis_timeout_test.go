package algorithms_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A sleeping client takes its time for the first commands, and none for others.
// All it ever answers is errAnswer.
type sleeping struct {
	takes    [2]time.Duration
	commands atomic.Int64
}

var errAnswer = errors.New("an answer")

func (s *sleeping) Process(ctx context.Context, cmd redis.Cmder) error {
	if i := int(s.commands.Add(1)) - 1; i < len(s.takes) {
		select {
		case <-time.After(s.takes[i]):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	cmd.SetErr(errAnswer)
	return errAnswer
}

// A call that waits behind others does not wait out two timeouts, unless
// somebody else was answered meanwhile.
func TestTimeoutOfThoseWhoWait(t *testing.T) {
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
				r := newRedis(t, &sleeping{takes: tt.takes}, &algorithms.RedisOptions{Timeout: 50 * time.Millisecond})
				ask := func() error {
					_, err := algorithms.Allow(context.Background(), r, "usr=1", ample)
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

// A script that is answered late has failed for all who asked, once: Redis may be
// too slow for the timeout for as long as it likes, and must not look well.
func TestLateAnswersAreErrors(t *testing.T) {
	server := redistest.Start(t)
	take(t, newRedis(t, server.Client(), nil), "usr=0", ample) // it knows the script
	d := &dawdler{gate: newGate(server.Client()), reads: marshal, done: make(chan struct{}, 1)}
	var seen events
	r := newRedis(t, d, &algorithms.RedisOptions{Timeout: 200 * time.Millisecond, Observe: seen.add})
	before := goleak.IgnoreCurrent()
	if _, err := algorithms.Allow(context.Background(), r, "usr=1", ample); algorithms.Classify(err) != algorithms.ErrorTimeout {
		t.Fatalf("got %v, want a timeout", err)
	}
	wantOne := func(when string) {
		t.Helper()
		await(t, "observed "+when, func() bool { return len(seen.all()) > 0 })
		got := seen.all()
		if len(got) != 1 || got[0].Kind != algorithms.EventError || got[0].Class != algorithms.ErrorTimeout || r.Stats().Errors != 1 {
			t.Errorf("%s: got %+v and %d errors, want one timeout", when, got, r.Stats().Errors)
		}
	}
	wantOne("before the answer")
	close(d.open)
	<-d.done
	goleak.VerifyNone(t, before)
	wantOne("after it")
}
