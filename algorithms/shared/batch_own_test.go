// Callers that send a batch themselves.

package shared

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An obedientClient gives up at the deadline of a context, if its options say so.
type obedientClient struct {
	options redis.Options
	silent  bool // Redis does not answer
	panics  bool
	own     atomic.Bool // the last batch had a deadline: its caller sent it
}

func (c *obedientClient) Options() *redis.Options { return &c.options }

func (c *obedientClient) Process(ctx context.Context, cmd redis.Cmder) error {
	deadline, own := ctx.Deadline()
	c.own.Store(own)
	if c.panics {
		panic("of the client")
	}
	err := errAnswer
	if c.silent && own {
		time.Sleep(time.Until(deadline))
		err = os.ErrDeadlineExceeded
	} else if c.silent {
		time.Sleep(3 * time.Second) // the default of ReadTimeout
		err = os.ErrDeadlineExceeded
	}
	cmd.SetErr(err)
	return err
}

// obedient returns options of a client that obeys deadlines.
func obedient() redis.Options {
	return redis.Options{
		PoolSize:                 10,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func TestCallersSendTheirOwnBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &obedientClient{options: obedient()}
		r := newRedis(t, client, &Options{Deadline: 50 * time.Millisecond})
		call := func(what string, within time.Duration, want error, own bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			start := time.Now()
			_, err := algorithms.Allow(ctx, r, "usr=1", algorithms.TokenBucket(1, time.Hour))
			if !errors.Is(err, want) || client.own.Load() != own {
				t.Errorf("%s: got %v and own %v, want %v and %v", what, err, client.own.Load(), want, own)
			}
			if took := time.Since(start); took > 50*time.Millisecond+clientSlack {
				t.Errorf("%s: took %v", what, took)
			}
		}
		call("a lone call", time.Hour, errAnswer, true)
		call("a call with an early deadline", 49*time.Millisecond, errAnswer, false)
		client.silent = true
		call("a silent Redis", time.Hour, errUnsent, true)
		client.silent = false
		call("after a late batch", time.Hour, errAnswer, false)
		time.Sleep(workersFor - clientSlack - time.Microsecond) // the call returned clientSlack after the deadline
		call("almost a second later", time.Hour, errAnswer, false)
		time.Sleep(time.Microsecond)
		call("a second later", time.Hour, errAnswer, true)
	})
}

// No client gives up when a context is cancelled, so the caller waits for its batch, at
// most until the limiter's deadline.
func TestCancelledCallerWaitsForItsOwnBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &obedientClient{options: obedient(), silent: true}
		r := newRedis(t, client, &Options{Deadline: 50 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		_, err := algorithms.Allow(ctx, r, "usr=1", algorithms.TokenBucket(1, time.Hour))
		took := time.Since(start)
		if !client.own.Load() || !errors.Is(err, errUnsent) || took < 50*time.Millisecond || took > 50*time.Millisecond+clientSlack {
			t.Errorf("got %v after %v, own %v, want the limiter's deadline", err, took, client.own.Load())
		}
	})
}

func TestOtherClientsGetWorkers(t *testing.T) {
	deaf, notified, byDefault, asks := obedient(), obedient(), obedient(), obedient()
	asks.CredentialsProvider = func() (string, string) { return "", "" }
	deaf.ContextTimeoutEnabled = false
	notified.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeAuto}
	byDefault.MaintNotificationsConfig = nil
	for name, o := range map[string]redis.Options{"deaf": deaf, "notified": notified, "by default": byDefault, "asks": asks} {
		if obeysDeadlines(&obedientClient{options: o}) {
			t.Errorf("%s: obeys deadlines, want that it does not", name)
		}
	}
	if obeysDeadlines(redistest.Script(nil)) {
		t.Error("a client without options obeys deadlines, want that it does not")
	}
}

// go-redis gives up at the deadline of a context, which callers that send their own
// batches rely on.
func TestClientObeysDeadlines(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o := obedient()
	o.Addr, o.ReadTimeout = server.Addr(), -1 // without a deadline it would wait for ever
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	l := must(t, client, &Options{Deadline: 100 * time.Millisecond, DenyCacheKeys: DenyCacheOff})
	limit := algorithms.TokenBucket(10, time.Hour)
	for take(t, l, "usr=1", limit, 0).Source != algorithms.Shared {
	}
	server.Stop()
	if d := take(t, l, "usr=1", limit, 1); d.Source != algorithms.Local {
		t.Errorf("got %+v of a Redis that is stopped, want a local decision", d)
	}
	server.Continue()
}

// A panic of the client, which net/http recovers from, takes no place in flight with it.
func TestOwnBatchSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &obedientClient{options: obedient(), panics: true}
		r := newRedis(t, client, &Options{Deadline: 50 * time.Millisecond})
		call := func() (err error) {
			defer func() {
				if p := recover(); (p != nil) != client.panics {
					t.Errorf("recovered %v", p)
				}
			}()
			_, err = algorithms.Allow(t.Context(), r, "usr=1", algorithms.TokenBucket(1, time.Hour))
			return err
		}
		for range maxStuck + 1 {
			_ = call()
		}
		client.panics = false
		if err := call(); !errors.Is(err, errAnswer) || !client.own.Load() {
			t.Errorf("got %v and own %v, want %v and true", err, client.own.Load(), errAnswer)
		}
		time.Sleep(time.Second) // the deadlines of all batches have passed
		if n := r.redis.underWay(); n != 0 {
			t.Errorf("%d batches are under way, want none", n)
		}
	})
}
