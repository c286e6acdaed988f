// Callers that send a batch themselves, and the clients through which batches go.

package batch

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
func countDirect(l *Lane) func() int {
	c, own := &directSends{Client: l.transport.direct.client}, *l.transport.direct
	own.client = c
	l.transport.direct = &own
	return func() (n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		n, c.n = c.n, 0
		return n
	}
}

const pipeDeadline = 50 * time.Millisecond

// A lone caller sends its batch itself, through the program's client with default
// options, and returns at its deadline, 1 ms later at most.
func TestCallersSendTheirOwnBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipeServer{}
		r := newLane(server.client(t, nil), Options{Deadline: pipeDeadline})
		own := countDirect(r)
		call := func(what, reason string, wantDirect int, want time.Duration) {
			t.Helper()
			took, err := takeOne(t.Context(), r)
			if n := own(); trouble.Of(err).Reason != reason || n != wantDirect || took != want {
				t.Errorf("%s: got %v, %d own batches, after %v, want %s, %d and %v", what, err, n, took, reason, wantDirect, want)
			}
		}
		call("a lone call", trouble.Key, 1, 0)
		closed := algorithms.Check{Policy: "default", Key: "usr=1", Limit: algorithms.TokenBucket(1, time.Hour), Cost: 1, Fail: algorithms.FailClosed}
		if err := r.Submit(t.Context(), groupOf(t, "penstock", closed)); trouble.Of(err).Reason != trouble.Key || own() != 0 {
			t.Errorf("a call that fails closed: got %v, want a worker to send it, whose late reply lets its units be returned", err)
		}
		server.setSilent(true)
		call("a silent Redis", trouble.Timeout, 1, pipeDeadline+clientSlack)
		server.setSilent(false)
		call("after a late batch", trouble.Key, 0, 0)
		time.Sleep(workersFor - clientSlack - time.Microsecond) // the call returned clientSlack after the deadline
		call("almost a second later", trouble.Key, 0, 0)
		time.Sleep(time.Microsecond)
		call("a second later", trouble.Key, 1, 0)
		if n := r.flying; n != 0 {
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
		r := newLane(server.client(t, asks), Options{Deadline: pipeDeadline})
		if took, err := takeOne(t.Context(), r); trouble.Of(err).Reason != trouble.Key || took > 0 || r.transport.direct != nil {
			t.Fatalf("got %v after %v, own %v, want an answer through a worker", err, took, r.transport.direct)
		}
		server.setSilent(true)
		start := time.Now()
		if took, err := takeOne(t.Context(), r); !errors.Is(err, trouble.ErrTimeout) || took != pipeDeadline {
			t.Errorf("got %v after %v, want a timeout at the deadline", err, took)
		}
		time.Sleep(10*pipeDeadline - pipeDeadline - time.Microsecond)
		if n := r.underWay(); n != 1 || len(server.closed(start)) > 0 {
			t.Errorf("before ten deadlines: %d batches are under way, and %v connections are closed, want one batch", n, server.closed(start))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n, closed := r.underWay(), server.closed(start); n != 0 || len(closed) != 1 || closed[0] != 10*pipeDeadline {
			t.Errorf("after ten deadlines: %d batches are under way, and connections are closed after %v", n, closed)
		}
	})
}

// No client gives up when a context is cancelled, so the caller waits for its batch, at
// most until the limiter's deadline.
func TestCancelledCallerWaitsForItsOwnBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pipeServer{}
		r := newLane(server.client(t, nil), Options{Deadline: pipeDeadline})
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
	one := (&pipeServer{}).client(t, nil)
	if r := newLane(one, Options{}).transport; r.direct == nil || r.direct.timed == nil || r.workers.timed == nil {
		t.Error("a client with default options: got no own sender, or no timeouts")
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	for _, c := range []Client{cluster, redistest.Script(nil), struct{ *redis.Client }{one}} {
		if r := newLane(c, Options{}).transport; r.direct != nil || r.workers.timed != nil {
			t.Errorf("%T: got timeouts of the limiter's, want the client's", c)
		}
	}
}

type noCredentials struct{}

func (noCredentials) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, errors.New("none")
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
		r := newLane(lateClient{}, Options{Deadline: pipeDeadline})
		r.transport.direct = r.transport.workers
		r.Circuit.(*master).excuses = true
		_, err := takeOne(t.Context(), r)
		if excused := r.transport.counts.excused.Load(); !errors.Is(err, trouble.ErrTimeout) || excused != 1 {
			t.Errorf("got %v, and %d excused expiries, want a timeout that is excused", err, excused)
		}
		if n := r.underWay(); n != 0 {
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
		r := newLane(client, Options{Deadline: pipeDeadline})
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
		if err := call(); trouble.Of(err).Reason != trouble.Key || own() != maxStuck+2 {
			t.Errorf("got %v, want %v, and that each caller has sent its batch", err, errAnswer)
		}
		time.Sleep(time.Second) // the deadlines of all batches have passed
		if n := r.underWay(); n != 0 {
			t.Errorf("%d batches are under way, want none", n)
		}
	})
}
