package algorithms_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// slowClient has go-redis's own timeouts: it waits five seconds for a reply.
func slowClient(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// gate is a client that keeps every command until it is opened.
type gate struct {
	algorithms.Client
	arrived chan struct{} // a value per command
	open    chan struct{} // a value, or closed, lets a command pass
}

func newGate(c algorithms.Client) *gate {
	return &gate{Client: c, arrived: make(chan struct{}, 1_000), open: make(chan struct{})}
}

func (g *gate) Process(ctx context.Context, cmd redis.Cmder) error {
	g.arrived <- struct{}{}
	<-g.open
	return g.Client.Process(ctx, cmd)
}

// askAll lets every key take one unit at once, and returns errors and decisions
// by key.
func askAll(ctx context.Context, l algorithms.Limiter, limit algorithms.Limit, keys []string) (map[string]error, map[string]algorithms.Decision) {
	var mu sync.Mutex
	errs, decisions := make(map[string]error), make(map[string]algorithms.Decision)
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() {
			d, err := algorithms.Allow(ctx, l, key, limit)
			mu.Lock()
			defer mu.Unlock()
			errs[key], decisions[key] = err, d
		})
	}
	wg.Wait()
	return errs, decisions
}

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "usr=" + strconv.Itoa(i)
	}
	return keys
}

// While two batches are in flight, everybody else gathers in few more.
func TestCallsGather(t *testing.T) {
	g := newGate(redistest.Start(t).Client())
	r := newRedis(t, g, nil)
	var wg sync.WaitGroup
	ask := func(keys []string) {
		wg.Go(func() {
			errs, _ := askAll(context.Background(), r, algorithms.TokenBucket(1, time.Hour), keys)
			for key, err := range errs {
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	for _, key := range []string{"ip=1", "ip=2"} {
		ask([]string{key})
		<-g.arrived
	}
	ask(manyKeys(300))
	for r.QueuedForTest() < 300 {
		runtime.Gosched()
	}
	close(g.open)
	wg.Wait()
	// Two lone calls, both sent whole at the most, then 300 by at most 48.
	if got := r.Stats(); got.Checks != 302 || got.Scripts > 11 {
		t.Errorf("got %+v, want 302 checks in at most 11 scripts", got)
	}
}

func TestOneBadKeySpoilsNobodyElse(t *testing.T) {
	for tag, limit := range map[string]algorithms.Limit{
		"fw": algorithms.FixedWindow(6, time.Hour),
		"tb": algorithms.TokenBucket(6, time.Hour),
	} {
		server := redistest.Start(t)
		g := newGate(server.Client())
		r := newRedis(t, g, nil)
		if err := server.Client().HSet(context.Background(), "penstock:{usr=7}:default:"+tag, "a", "b").Err(); err != nil {
			t.Fatal(err)
		}
		close(g.open)
		keys := append(manyKeys(100), manyKeys(100)...)
		for range 3 {
			errs, decisions := askAll(context.Background(), r, limit, keys)
			for key, err := range errs {
				bad := key == "usr=7"
				if (err != nil) != bad || decisions[key].Allowed == bad {
					t.Errorf("%s: %s: got %v, %+v", tag, key, err, decisions[key])
				}
				if bad && !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("%s: %s: got %v, want its own error", tag, key, err)
				}
			}
		}
	}
}

// A server that does not answer holds nobody beyond their deadline, and not the
// next caller for the five seconds that go-redis waits.
func TestDeadlineHoldsWhateverTheClientWaits(t *testing.T) {
	server := redistest.Start(t)
	r := newRedis(t, slowClient(t, server), nil)
	limit := algorithms.FixedWindow(1_000, 24*time.Hour)
	take(t, r, "usr=1", limit)

	server.Stop()
	for i := range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		start := time.Now()
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		if waited := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || waited > 4*time.Second {
			t.Errorf("call %d: got %v after %v, want it to end at its deadline", i, err, waited)
		}
		cancel()
	}
	server.Continue()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := algorithms.Allow(ctx, r, "usr=1", limit); err != nil {
		t.Errorf("after the server went on: %v", err)
	}
}

// Calls that have not been sent when they are given up never are.
func TestGivenUpInTheQueueIsNotCharged(t *testing.T) {
	g := newGate(redistest.Start(t).Client())
	r := newRedis(t, g, &algorithms.RedisOptions{InFlight: 1})
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	first := make(chan error, 1)
	go func() {
		_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
		first <- err
	}()
	<-g.arrived
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		gone <- err
	}()
	for r.QueuedForTest() < 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	d, err := algorithms.Peek(context.Background(), r, "usr=1", limit)
	if err != nil || d.Remaining != 99 {
		t.Errorf("got %d remaining, %v, want 99", d.Remaining, err)
	}
}

// The answer of a call that was given up goes nowhere, and to no later call.
func TestLateAnswerIsNobodyElses(t *testing.T) {
	g := newGate(redistest.Start(t).Client())
	r := newRedis(t, g, &algorithms.RedisOptions{InFlight: 1})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-g.arrived
		cancel()
	}()
	if _, err := algorithms.Allow(ctx, r, "usr=1", algorithms.TokenBucket(100, time.Hour)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	go func() {
		for r.QueuedForTest() < 1 {
			runtime.Gosched()
		}
		close(g.open)
	}()
	d, err := algorithms.Allow(context.Background(), r, "usr=2", algorithms.TokenBucket(7, time.Hour))
	if err != nil || !d.Allowed || d.Remaining != 6 {
		t.Errorf("got %+v, %v, want it allowed with 6 remaining", d, err)
	}
}

// What waits behind a batch that is not sent was not sent either: Redis is owed
// what is admitted of both.
func TestUnsentIsOwed(t *testing.T) {
	g := newGate(redistest.Start(t).Client())
	stack := algorithms.Must(algorithms.NewShared(g, &algorithms.Options{
		Redis:    algorithms.RedisOptions{InFlight: 1},
		Fallback: algorithms.FallbackOptions{Deadline: 500 * time.Millisecond},
	}))
	defer stack.Close()
	defer close(g.open)
	limit := algorithms.TokenBucket(10, time.Hour)
	first := make(chan error)
	go func() {
		_, err := algorithms.Allow(context.Background(), stack, "usr=first", limit)
		first <- err
	}()
	for range 2 { // the call, and that the instance makes itself known
		<-g.arrived
	}
	errs, decisions := askAll(context.Background(), stack, limit, manyKeys(5))
	for key, d := range decisions {
		if errs[key] != nil || !d.Allowed || d.Source != algorithms.Local {
			t.Errorf("%s: got %+v, %v, want it admitted locally", key, d, errs[key])
		}
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if got := stack.Stats().Fallback; got.Owed != 6 {
		t.Errorf("got %+v, want six keys owed", got)
	}
}

// What is stuck is bounded: beyond it calls fail at once.
func TestOverload(t *testing.T) {
	g := newGate(redistest.Start(t).Client())
	r := newRedis(t, g, nil)
	limit := algorithms.FixedWindow(1_000, time.Hour)
	before := goleak.IgnoreCurrent()
	stuck := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
		defer cancel()
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		return err
	}
	// A deadline may pass before a call begins, so not every call gets stuck.
	err := stuck()
	for ; errors.Is(err, context.DeadlineExceeded); err = stuck() {
		if len(g.arrived) > 16 {
			t.Fatalf("%d batches are stuck, want at most 16", len(g.arrived))
		}
	}
	if !errors.Is(err, algorithms.ErrOverloaded) || len(g.arrived) != 16 {
		t.Errorf("got %v with %d batches stuck, want overload with 16", err, len(g.arrived))
	}
	if _, err := algorithms.Allow(context.Background(), r, "usr=1", limit); !errors.Is(err, algorithms.ErrOverloaded) {
		t.Errorf("got %v, want it to fail at once", err)
	}
	close(g.open)
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
	if _, err := algorithms.Allow(context.Background(), r, "usr=1", limit); err != nil {
		t.Errorf("after the stuck calls ended: %v", err)
	}
}

// An error of the round trip reaches every caller of the batch as one value.
func TestBatchErrorIsOne(t *testing.T) {
	failure := errors.New("no reply")
	fail := &failing{err: failure}
	var events int
	r := newRedis(t, fail, &algorithms.RedisOptions{Observe: func(algorithms.Event) { events++ }, InFlight: 1})
	errs, _ := askAll(context.Background(), r, algorithms.FixedWindow(1, time.Hour), manyKeys(50))
	for key, err := range errs {
		if !errors.Is(err, failure) {
			t.Errorf("%s: got %v, want the round trip's error", key, err)
		}
	}
	if got := r.Stats(); int(got.Errors) != events || got.Errors != got.Scripts {
		t.Errorf("got %+v and %d events, want one of each per script", got, events)
	}
}

type failing struct{ err error }

func (f *failing) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.SetErr(f.err)
	return f.err
}

// A reply that is not the script's is an error, and never a decision.
func TestForeignReplies(t *testing.T) {
	now := "\x00\x00\x00\x00\x00\x00\xf0?"
	for _, reply := range []any{
		nil, "OK", int64(1), []any{}, []any{int64(1)}, []any{""}, []any{now}, []any{now + "\x00"}, []any{now + "\x01"},
		[]any{now + "\x00" + strings.Repeat("x", 28)}, []any{now + "\x00" + strings.Repeat("x", 30)}, []any{now + "\x00" + strings.Repeat("x", 29), "an error"},
	} {
		r := newRedis(t, &replying{reply}, nil)
		if d, err := algorithms.Allow(context.Background(), r, "usr=1", algorithms.FixedWindow(1, time.Hour)); err == nil {
			t.Errorf("reply %q: got %+v, want an error", reply, d)
		}
	}
}

type replying struct{ reply any }

func (f *replying) Process(_ context.Context, cmd redis.Cmder) error {
	if c, ok := cmd.(interface{ SetVal(any) }); ok {
		c.SetVal(f.reply)
		return nil
	}
	return fmt.Errorf("%T takes no value", cmd)
}
