// How calls share round trips, but not their errors and deadlines.

package shared

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// While two batches are in flight, all other calls gather in few batches.
func TestCallsGather(t *testing.T) {
	c := redistest.Script(redistest.Start(t).Client(), redistest.Hold())
	r := newRedis(t, c, nil)
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
	for i, key := range []string{"ip=1", "ip=2"} {
		ask([]string{key})
		c.UntilHeld(t, i+1)
	}
	ask(manyKeys(300))
	redistest.Until(t, "300 calls are queued", func() bool { return r.redis.queued() == 300 })
	c.Open()
	wg.Wait()
	// Two lone calls, both sent whole at most, then 300 in batches of up to 48.
	if got := statsOf(r).Redis; got.Checks != 302 || got.Scripts > 11 {
		t.Errorf("got %+v, want 302 checks in at most 11 scripts", got)
	}
}

// Takes of different costs in one batch are charged their own cost each.
func TestBatchesKeepCostsApart(t *testing.T) {
	c := redistest.Script(redistest.Start(t).Client(), redistest.Hold())
	r := newRedis(t, c, nil)
	limit := algorithms.TokenBucket(100, time.Hour)
	var wg sync.WaitGroup
	ask := func(key string, cost int64) {
		wg.Go(func() {
			if d := take(t, r, key, limit, cost); !d.Allowed || d.Remaining != 100-cost {
				t.Errorf("%s: got %+v, want %d remaining after a cost of %d", key, d, 100-cost, cost)
			}
		})
	}
	for i, key := range []string{"ip=1", "ip=2"} {
		ask(key, 1)
		c.UntilHeld(t, i+1)
	}
	for i, key := range manyKeys(40) {
		ask(key, int64(1+i%7))
	}
	redistest.Until(t, "40 calls are queued", func() bool { return r.redis.queued() == 40 })
	c.Open()
	wg.Wait()
}

func TestBadKeyFailsItsOwnCallsOnly(t *testing.T) {
	for tag, limit := range map[string]algorithms.Limit{
		"fw": algorithms.FixedWindow(6, time.Hour),
		"tb": algorithms.TokenBucket(6, time.Hour),
	} {
		client := redistest.Start(t).Client()
		r := newRedis(t, client, nil)
		do(t, client, "hset", "penstock:{usr=7}:default:"+tag, "a", "b")
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

// A server that does not answer holds no call beyond the limiter's deadline, and not for the five seconds
// that go-redis waits, also if the caller gives up sooner.
func TestDeadlineHoldsWhateverTheClientWaits(t *testing.T) {
	server := redistest.Start(t)
	r := newRedis(t, clientOf(t, server.Addr(), nil), &Options{Deadline: 200 * time.Millisecond})
	limit := algorithms.FixedWindow(1_000, 24*time.Hour)
	answered := func() bool {
		_, err := algorithms.Allow(t.Context(), r, "usr=1", limit)
		return err == nil
	}
	redistest.Until(t, "Redis answers in time", answered)
	server.Stop()
	for i := range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		start := time.Now()
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		if waited := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || waited > 4*time.Second {
			t.Errorf("call %d: got %v after %v, want it to end at the deadline", i, err, waited)
		}
		cancel()
	}
	server.Continue()
	redistest.Until(t, "Redis answers again", answered)
}

// A call that is given up before it is sent is never sent.
func TestGivenUpInTheQueueIsNotCharged(t *testing.T) {
	c := redistest.Script(redistest.Start(t).Client(), redistest.Hold())
	r := newRedis(t, c, &Options{InFlight: 1})
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	first := make(chan error, 1)
	go func() {
		_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
		first <- err
	}()
	c.UntilHeld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		gone <- err
	}()
	redistest.Until(t, "a call is queued", func() bool { return r.redis.queued() == 1 })
	cancel()
	if err := <-gone; !errors.Is(err, trouble.ErrUnsent) {
		t.Errorf("got %v, want that nothing was sent", err)
	}
	c.Open()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if d := take(t, r, "usr=1", limit, 0); d.Remaining != 99 {
		t.Errorf("got %d remaining, want 99", d.Remaining)
	}
}

// The answer to an overdue call is dropped, and reaches no later call.
func TestLateAnswerReachesNoOtherCall(t *testing.T) {
	server := redistest.Start(t)
	take(t, newRedis(t, server.Client(), nil), "usr=0", algorithms.TokenBucket(1, time.Hour), 1) // it knows the script
	c := redistest.Script(server.Client(), redistest.Deaf(), redistest.Inspect(marshal), redistest.Hold())
	r := newRedis(t, c, &Options{InFlight: 1, Deadline: 2 * time.Second})
	if _, err := algorithms.Allow(context.Background(), r, "usr=1", algorithms.TokenBucket(100, time.Hour)); !errors.Is(err, trouble.ErrTimeout) {
		t.Fatalf("got %v, want that there is no answer", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		redistest.Until(t, "another call is held", func() bool { return c.Held() == 2 })
		c.Open()
	})
	if d := take(t, r, "usr=2", algorithms.TokenBucket(7, time.Hour), 1); !d.Allowed || d.Remaining != 6 {
		t.Errorf("got %+v, want it allowed with 6 remaining", d)
	}
}

// A caller that gives up waits for its batch, at most until the deadline: its call may be charged already.
func TestCallersLeaveOnlyTheQueue(t *testing.T) {
	c := redistest.Script(redistest.Start(t).Client(), redistest.Hold())
	r := newRedis(t, c, &Options{InFlight: 1})
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() {
		_, err := algorithms.Allow(ctx, r, "usr=1", algorithms.TokenBucket(100, time.Hour))
		first <- err
	}()
	c.UntilHeld(t, 1)
	cancel()
	if _, err := algorithms.Allow(ctx, r, "usr=2", algorithms.TokenBucket(100, time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v of a call that begins afterwards, want that it was cancelled", err)
	}
	select {
	case err := <-first:
		t.Errorf("got %v while the call was in flight", err)
	default:
	}
	c.Open()
	if err := <-first; err != nil {
		t.Errorf("got %v, want the answer of Redis", err)
	}
}

// A call that waits behind a batch that is not sent was not sent either: Redis is
// owed the units of both.
func TestUnsentIsOwed(t *testing.T) {
	c := redistest.Script(redistest.Start(t).Client(), redistest.On("eval", redistest.Hold()))
	l := must(t, c, &Options{InFlight: 1, Deadline: 500 * time.Millisecond})
	t.Cleanup(c.Open)
	limit := algorithms.TokenBucket(10, time.Hour)
	first := make(chan error)
	go func() {
		_, err := algorithms.Allow(context.Background(), l, "usr=first", limit)
		first <- err
	}()
	c.UntilHeld(t, 1)
	errs, decisions := askAll(context.Background(), l, limit, manyKeys(5))
	for key, d := range decisions {
		if errs[key] != nil || !d.Allowed || d.Source != algorithms.Local {
			t.Errorf("%s: got %+v, %v, want it admitted locally", key, d, errs[key])
		}
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if got := l.Stats().Fallback; got.Owed != 6 {
		t.Errorf("got %+v, want six keys owed", got)
	}
}

// The number of stuck batches is bounded: beyond it calls fail at once.
func TestStuckBatchesAreBounded(t *testing.T) {
	const maxStuck = 16
	c := redistest.Script(redistest.Start(t).Client(), redistest.Hold())
	r := newRedis(t, c, &Options{Deadline: 10 * time.Millisecond})
	limit := algorithms.FixedWindow(1_000, time.Hour)
	before := goleak.IgnoreCurrent()
	stuck := func() error {
		_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
		return err
	}
	redistest.Until(t, "as many batches are stuck as may be", func() bool {
		_ = stuck() // also overloaded, if this process is late
		return c.Held() >= maxStuck
	})
	for range 10 {
		if err := stuck(); !errors.Is(err, trouble.ErrOverloaded) {
			t.Errorf("got %v, want it to fail at once", err)
		}
	}
	if n := c.Count(""); n != maxStuck {
		t.Errorf("%d batches are stuck, want %d", n, maxStuck)
	}
	c.Open()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
	redistest.Until(t, "calls are answered again", func() bool { return stuck() == nil })
}

// An error of the round trip reaches every caller of the batch as one value.
func TestBatchErrorIsOne(t *testing.T) {
	failure := errors.New("no reply")
	r := newRedis(t, redistest.Script(nil, redistest.Fail(failure)), &Options{InFlight: 1})
	errs, _ := askAll(context.Background(), r, algorithms.FixedWindow(1, time.Hour), manyKeys(50))
	for key, err := range errs {
		if !errors.Is(err, failure) {
			t.Errorf("%s: got %v, want the round trip's error", key, err)
		}
	}
	if got := statsOf(r).Redis.Scripts; got == 0 || failuresOf(r) != got {
		t.Errorf("got %d scripts and %d errors, want one for each script", got, failuresOf(r))
	}
}
