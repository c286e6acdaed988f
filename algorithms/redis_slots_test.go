package algorithms_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// hanging is a client that keeps the reply for one key, once it hangs.
type hanging struct {
	algorithms.Client
	late    string
	hangs   atomic.Bool
	spares  atomic.Int64  // so many commands for it before
	arrived chan struct{} // a value for each that hangs, if there is room
	release func()        // returns when the reply may go on
}

func newHanging(c algorithms.Client, late string, release func()) *hanging {
	return &hanging{Client: c, late: late, arrived: make(chan struct{}, 1), release: release}
}

func (h *hanging) Process(ctx context.Context, cmd redis.Cmder) error {
	err := h.Client.Process(ctx, cmd)
	if key, ok := cmd.Args()[3].(*string); ok && strings.Contains(*key, h.late) && h.hangs.Load() && h.spares.Add(-1) < 0 {
		select {
		case h.arrived <- struct{}{}:
		default:
		}
		h.release()
	}
	return err
}

// A call that fails in its second slot gives back what it took in the first,
// and does not touch what the second may still answer.
func TestFailedSlotGivesBackTheOthers(t *testing.T) {
	cluster := redistest.StartCluster(t)
	// By the time: were it by the test, the race detector would take what the call
	// does after it was given up to be ordered before the late answer.
	client := newHanging(cluster.Client(), "{usr=late}", func() { time.Sleep(300 * time.Millisecond) })
	r := newRedis(t, client, nil)
	limit := algorithms.FixedWindow(10, 24*time.Hour)
	checks := []algorithms.Check{
		{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 3},
		{Policy: algorithms.DefaultPolicy, Key: "usr=late", Limit: limit, Cost: 3},
	}
	for _, c := range checks { // learns that it is a Cluster, and loads the script
		take(t, r, c.Key, limit)
	}
	both := append([]algorithms.Check(nil), checks...)
	if err := r.Allow(context.Background(), both); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent() // the client's own
	client.hangs.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-client.arrived
		cancel()
	}()
	if err := r.Allow(ctx, checks); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	d, err := algorithms.Peek(context.Background(), r, "usr=1", limit)
	if err != nil || d.Remaining != 6 {
		t.Errorf("got %d remaining, %v, want 6: 1 and 3 were taken for good", d.Remaining, err)
	}
	goleak.VerifyNone(t, before) // the late answer comes, and touches nobody
	client.hangs.Store(false)
	if d, err = algorithms.Peek(context.Background(), r, "usr=late", limit); err != nil || d.Remaining != 3 {
		t.Errorf("got %d remaining, %v, want 3: what was sent is charged", d.Remaining, err)
	}
}

// What cannot be given back is the timeout's error, and not a caller's.
func TestWhatCannotGoBackIsOfATimeout(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	client := newHanging(redistest.StartCluster(t).Client(), "{usr=late}", func() { <-released })
	var seen events
	r := newRedis(t, client, &algorithms.RedisOptions{Timeout: patience, Observe: seen.add})
	limit := algorithms.FixedWindow(2, 24*time.Hour)
	checks := []algorithms.Check{
		{Policy: algorithms.DefaultPolicy, Key: "usr=late", Limit: limit, Cost: 1},
		{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: 1},
	}
	if err := r.Allow(context.Background(), slices.Clone(checks)); err != nil { // learns that it is a Cluster
		t.Fatal(err)
	}
	take(t, r, "usr=1", limit)
	client.spares.Store(1) // the take
	client.hangs.Store(true)
	if err := r.Allow(context.Background(), checks); err != nil || algorithms.Allowed(checks) {
		t.Fatalf("got %+v, %v, want it denied in the second slot", checks, err)
	}
	i := slices.IndexFunc(seen.all(), func(e algorithms.Event) bool { return e.Kind == algorithms.EventReturnFailed })
	if i < 0 || seen.all()[i].Class != algorithms.ErrorTimeout {
		t.Errorf("got %+v, want a return that failed by a timeout", seen.all())
	}
}

// A candidate whose take is asked in a later slot is charged all the same.
func TestCandidateOfALaterSlot(t *testing.T) {
	r := newRedis(t, redistest.StartCluster(t).Client(), nil)
	limit := algorithms.FixedWindow(2, 24*time.Hour)
	for i, wantLeft := range []int64{9, 8, 7} {
		checks := []algorithms.Check{
			{Policy: "p", Key: "usr=1", Limit: algorithms.FixedWindow(50, 24*time.Hour), Cost: 1},
			{Policy: "p", Key: "usr=2", Limit: limit, Cost: 1},
			{Policy: "p~candidate", Key: "usr=1", Limit: algorithms.FixedWindow(10, 24*time.Hour), Cost: 1, Op: algorithms.TrialInstead},
		}
		if err := r.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		if got := checks[2].Decision; algorithms.Allowed(checks) != (i < 2) || !got.Allowed || got.Remaining != wantLeft || got.Receipt.Units() != 1 {
			t.Errorf("call %d: got %+v, want it charged, %d left", i, got, wantLeft)
		}
	}
}

// A call without a deadline ends by itself, also one that has not been sent.
func TestTimeout(t *testing.T) {
	server := redistest.Start(t)
	r := newRedis(t, slowClient(t, server), &algorithms.RedisOptions{Timeout: 100 * time.Millisecond, InFlight: 1})
	limit := algorithms.FixedWindow(1_000, 24*time.Hour)
	take(t, r, "usr=1", limit)
	server.Stop()
	start := time.Now()
	errs, _ := askAll(context.Background(), r, limit, manyKeys(300))
	if waited := time.Since(start); waited > 4*time.Second { // and not five, as the client would
		t.Errorf("300 calls took %v, want them to end by their timeout", waited)
	}
	for key, err := range errs {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want the timeout's error", key, err)
		}
	}
	server.Continue()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := algorithms.Allow(ctx, r, "usr=1", limit)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("after the server went on: %v", err)
		}
	}
}

func TestTooManyChecks(t *testing.T) {
	m := newMemory(t, nil)
	check := algorithms.Check{Policy: "p", Key: "usr=1", Limit: algorithms.FixedWindow(10_000, time.Hour), Cost: 1}
	checks := make([]algorithms.Check, 1_001)
	for i := range checks {
		checks[i] = check
	}
	if err := m.Allow(context.Background(), checks); !errors.Is(err, algorithms.ErrInvalid) {
		t.Errorf("1 001 checks: got %v, want ErrInvalid", err)
	}
	if err := m.Allow(context.Background(), checks[:1_000]); err != nil {
		t.Errorf("1 000 checks: %v", err)
	}
}
