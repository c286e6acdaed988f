// Callers that send a batch themselves, and the clients through which batches go.

package shared

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// directSends counts the batches that callers send.
type directSends struct {
	Client
	mu sync.Mutex
	n  int
}

func (c *directSends) Process(ctx context.Context, cmd redis.Cmder) error {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Client.Process(ctx, cmd)
}

// countDirect returns how many batches callers have sent themselves since it was called.
func countDirect(l *Limiter) func() int {
	c, own := &directSends{Client: l.redis.direct.client}, *l.redis.direct
	own.client = c
	l.redis.direct = &own
	return func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		n, c.n = c.n, 0
		return n
	}
}

const pipeDeadline = 50 * time.Millisecond

// takeOne takes a unit, and returns how long it took.
func takeOne(ctx context.Context, l *Limiter) (took time.Duration, err error) {
	start := time.Now()
	_, err = algorithms.Allow(ctx, l, "usr=1", algorithms.TokenBucket(1, time.Hour))
	return time.Since(start), err
}

// A lone caller sends its batch itself, through the program's client with default
// options, and returns at its deadline, 1 ms later at most.
func TestCallersSendTheirOwnBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipeServer{}
		r := newRedis(t, server.client(t, nil), &Options{Deadline: pipeDeadline})
		own := countDirect(r)
		call := func(what string, within time.Duration, reason string, wantDirect int, want time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			took, err := takeOne(ctx, r)
			if n := own(); Reason(err) != reason || n != wantDirect || took != want {
				t.Errorf("%s: got %v, %d own batches, after %v, want %s, %d and %v", what, err, n, took, reason, wantDirect, want)
			}
		}
		call("a lone call", time.Hour, trouble.Key, 1, 0)
		closed := checksFor(perDay, "usr=1", "usr=1")
		closed[1].Fail = algorithms.FailClosed
		if err := r.Allow(t.Context(), closed); Reason(err) != trouble.Key || own() != 0 {
			t.Errorf("a call that fails closed: got %v, want a worker to send it, whose late reply lets its units be returned", err)
		}
		call("a call with an early deadline", pipeDeadline-1, trouble.Key, 0, 0)
		server.setSilent(true)
		call("a silent Redis", time.Hour, trouble.Timeout, 1, pipeDeadline+clientSlack)
		server.setSilent(false)
		call("after a late batch", time.Hour, trouble.Key, 0, 0)
		time.Sleep(workersFor - clientSlack - time.Microsecond) // the call returned clientSlack after the deadline
		call("almost a second later", time.Hour, trouble.Key, 0, 0)
		time.Sleep(time.Microsecond)
		call("a second later", time.Hour, trouble.Key, 1, 0)
		if n := r.redis.only.flying; n != 0 {
			t.Errorf("at the end %d calls are in flight", n)
		}
	})
}

// In a stall, workers keep their connections for ten deadlines, so that late replies
// still say what Redis has executed. Then the client gives up.
func TestWorkersWaitTenDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipeServer{}
		asks := func(o *redis.Options) { o.OnConnect = func(context.Context, *redis.Conn) error { return nil } }
		r := newRedis(t, server.client(t, asks), &Options{Deadline: pipeDeadline})
		if took, err := takeOne(t.Context(), r); Reason(err) != trouble.Key || took > 0 || r.redis.direct != nil {
			t.Fatalf("got %v after %v, own %v, want an answer through a worker", err, took, r.redis.direct)
		}
		server.setSilent(true)
		start := time.Now()
		if took, err := takeOne(t.Context(), r); !errors.Is(err, trouble.ErrTimeout) || took != pipeDeadline {
			t.Errorf("got %v after %v, want a timeout at the deadline", err, took)
		}
		time.Sleep(10*pipeDeadline - pipeDeadline - time.Microsecond)
		if n := r.redis.underWay(); n != 1 || len(server.closed(start)) > 0 {
			t.Errorf("before ten deadlines: %d batches are under way, and %v connections are closed, want one batch", n, server.closed(start))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n, closed := r.redis.underWay(), server.closed(start); n != 0 || len(closed) != 1 || closed[0] != 10*pipeDeadline {
			t.Errorf("after ten deadlines: %d batches are under way, and connections are closed after %v", n, closed)
		}
	})
}

// No client gives up when a context is cancelled, so the caller waits for its batch, at
// most until the limiter's deadline.
func TestCancelledCallerWaitsForItsOwnBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipeServer{}
		r := newRedis(t, server.client(t, nil), &Options{Deadline: pipeDeadline})
		own := countDirect(r)
		_, _ = takeOne(t.Context(), r) // connects
		server.setSilent(true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if took, err := takeOne(ctx, r); own() != 2 || !errors.Is(err, trouble.ErrTimeout) || took != pipeDeadline+clientSlack {
			t.Errorf("got %v after %v, want the limiter's deadline", err, took)
		}
	})
}

// Clients that may call a program, or wait for a maintenance, get workers. So do
// clients of other types, which have no timeouts of the limiter's.
func TestOtherClientsGetWorkers(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*redis.Options){
		"OnConnect":           func(o *redis.Options) { o.OnConnect = func(context.Context, *redis.Conn) error { return nil } },
		"CredentialsProvider": func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return "", "" } },
		"CredentialsProviderContext": func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (_, _ string, _ error) { return }
		},
		"StreamingCredentialsProvider": func(o *redis.Options) {
			o.StreamingCredentialsProvider = noCredentials{}
		},
	} {
		o := &redis.Options{Addr: "127.0.0.1:1"}
		set(o)
		if endsInTime(o) {
			t.Errorf("%s: callers send batches, want workers", name)
		}
	}
	one := clientOf(t, "127.0.0.1:1", nil)
	if r := newRedis(t, one, nil).redis; r.direct == nil || r.direct.timed == nil || r.workers.timed == nil || r.workers.pipelines == nil {
		t.Error("a client with default options: got no own sender, or no timeouts, or no pipelines")
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	for _, c := range []Client{cluster, redistest.Script(nil), struct{ *redis.Client }{one}} {
		if r := newRedis(t, c, nil).redis; r.direct != nil || r.workers.timed != nil {
			t.Errorf("%T: got timeouts of the limiter's, want the client's", c)
		}
	}
}

type noCredentials struct{}

func (noCredentials) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, errors.New("none")
}

// README's client is redis.NewClient with an address. A Redis that hangs holds a lone
// caller for its deadline, although the client waits for seconds.
func TestDefaultClientInAStall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	l := must(t, client, &Options{Deadline: 100 * time.Millisecond, Views: ViewsOff})
	own := countDirect(l)
	limit := algorithms.TokenBucket(10, time.Hour)
	redistest.Until(t, "a caller sends its own batch", func() bool {
		return take(t, l, "usr=1", limit, 0).Source == algorithms.Shared && own() > 0
	})
	server.Stop()
	start := time.Now()
	d := take(t, l, "usr=1", limit, 1)
	if took := time.Since(start); d.Source != algorithms.Local || took > 2*time.Second {
		t.Errorf("got %+v after %v of a Redis that is stopped, want a local decision at the deadline", d, took)
	}
	server.Continue()
}

// A lateClient gives up before the timer of the batch has fired, in a process that is
// 20 ms late.
type lateClient struct{}

func (lateClient) Process(_ context.Context, cmd redis.Cmder) error {
	marshal(cmd)
	cmd.Args()[1].(*scriptName).batch.timer.Reset(time.Hour)
	time.Sleep(pipeDeadline + 20*time.Millisecond)
	cmd.SetErr(os.ErrDeadlineExceeded)
	return os.ErrDeadlineExceeded
}

// If the client gives up first, the batch still ends at its deadline, and a process that
// is late itself blames no Redis.
func TestOwnBatchOfALateProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRedis(t, lateClient{}, &Options{Deadline: pipeDeadline})
		r.redis.direct = r.redis.workers
		_, err := takeOne(t.Context(), r)
		if excused := r.redis.laneOf("").circuit.excused.Load(); !errors.Is(err, trouble.ErrTimeout) || excused != 1 {
			t.Errorf("got %v, and %d excused expiries, want a timeout that is excused", err, excused)
		}
		if n := r.redis.underWay(); n != 0 {
			t.Errorf("%d batches are under way, want none", n)
		}
	})
}

// A panic of the client, which net/http recovers from, takes no place in flight with it.
func TestOwnBatchSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, panics := &pipeServer{}, true
		client := server.client(t, nil)
		client.AddHook(redistest.Script(nil, redistest.Inspect(func(redis.Cmder) {
			if panics {
				panic("of the client")
			}
		})))
		r := newRedis(t, client, &Options{Deadline: pipeDeadline})
		own := countDirect(r)
		call := func() (err error) {
			defer func() {
				if p := recover(); (p != nil) != panics {
					t.Errorf("recovered %v, %v", p, err)
				}
			}()
			_, err = takeOne(t.Context(), r)
			return err
		}
		for range maxStuck + 1 {
			_ = call()
		}
		panics = false
		if err := call(); Reason(err) != trouble.Key || own() != maxStuck+2 {
			t.Errorf("got %v, want %v, and that each caller has sent its batch", err, errAnswer)
		}
		time.Sleep(time.Second) // the deadlines of all batches have passed
		if n := r.redis.underWay(); n != 0 {
			t.Errorf("%d batches are under way, want none", n)
		}
	})
}
