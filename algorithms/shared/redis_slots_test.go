// Calls whose checks lie in several slots of a Cluster.

package shared

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A call that fails in its second slot gives back its units in the first. It
// does not touch the items of the second, which may still be answered.
func TestFailedSlotGivesBackTheOthers(t *testing.T) {
	client := redistest.StartCluster(t).Client()
	hook := redistest.Script(nil)
	client.AddHook(hook)
	const deadline = time.Second
	r := newRedis(t, client, &Options{Deadline: deadline})
	limit := algorithms.FixedWindow(10, 24*time.Hour)
	for _, key := range []string{"usr=1", "usr=late"} { // the nodes learn the script
		take(t, r, key, limit, 1)
	}
	checks := checksFor(limit, "usr=1", "usr=late")
	checks[0].Cost, checks[1].Cost = 3, 3
	if err := r.Allow(context.Background(), slices.Clone(checks)); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent() // the client's own
	hook.Forget()
	// The reply is late by the time. If the test released it, the race detector
	// would take what the call does after its end to be ordered before it.
	hook.Set(redistest.On("{usr=late}", redistest.WaitReply(deadline+deadline/2)))
	if err := r.Allow(context.Background(), checks); !errors.Is(err, trouble.ErrTimeout) {
		t.Fatalf("got %v, want that there is no answer", err)
	}
	if d := take(t, r, "usr=1", limit, 0); d.Remaining != 6 {
		t.Errorf("got %d remaining, want 6: 1 and 3 were taken for good", d.Remaining)
	}
	redistest.Until(t, "the late answer has come", func() bool { return goleak.Find(before) == nil }) // and touched nothing
	hook.Set()
	if d := take(t, r, "usr=late", limit, 0); d.Remaining != 3 {
		t.Errorf("got %d remaining, want 3: what was sent is charged", d.Remaining)
	}
}

// Units that cannot be given back in time are reported as a timeout, and not as
// a caller's context.
func TestFailedReturnIsATimeout(t *testing.T) {
	t.Parallel()
	client := redistest.StartCluster(t).Client()
	hook := redistest.Script(nil)
	client.AddHook(hook)
	var logged logRecords
	r := newRedis(t, client, &Options{Logger: logged.logger(), Deadline: 5 * time.Second})
	limit := algorithms.FixedWindow(2, 24*time.Hour)
	checks := checksFor(limit, "usr=late", "usr=1")
	if err := r.Allow(context.Background(), slices.Clone(checks)); err != nil { // the nodes learn the script
		t.Fatal(err)
	}
	take(t, r, "usr=1", limit, 1)
	hook.Set(redistest.On("{usr=late}", redistest.InTurn(redistest.Wait(0), redistest.HoldReply()))) // the take, and its return
	t.Cleanup(hook.Open)
	if err := r.Allow(context.Background(), checks); err != nil || algorithms.Allowed(checks) {
		t.Fatalf("got %+v, %v, want it denied in the second slot", checks, err)
	}
	redistest.Until(t, "there is a line", func() bool { return logged.count(logPrefix+"lost return of units") > 0 })
	err, _ := logged.attr(logPrefix+"lost return of units", "error").(error)
	if Reason(err) != trouble.Timeout || r.redis.ledger.returnsLost.Load() != 1 {
		t.Errorf("got %v and %d returns that failed, want one, by a timeout", err, r.redis.ledger.returnsLost.Load())
	}
}

// A candidate whose take is asked in a later slot is charged all the same.
func TestCandidateOfALaterSlot(t *testing.T) {
	t.Parallel()
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

// A slotsClient is a client of a Cluster that does not know the masters. Its Redis admits each take, and answers after a
// round trip.
type slotsClient struct {
	trip time.Duration
	sent atomic.Int64 // scripts
}

func (c *slotsClient) Options() *redis.ClusterOptions { return &redis.ClusterOptions{} }
func (c *slotsClient) ReloadState(context.Context)    {}
func (c *slotsClient) MasterForKey(context.Context, string) (*redis.Client, error) {
	return nil, errors.New("unknown")
}

func (c *slotsClient) Process(_ context.Context, cmd redis.Cmder) error {
	c.sent.Add(1)
	marshal(cmd)
	time.Sleep(c.trip)
	const admitted, units, charged = 1, 1 << 5, 1 << 2
	var reply []byte
	for _, v := range []float64{1_000_000, admitted | units | charged, 1_000_000} {
		reply = binary.LittleEndian.AppendUint64(reply, math.Float64bits(v))
	}
	cmd.(interface{ SetVal(any) }).SetVal(string(reply))
	return nil
}

// TestSlotsShareADeadline: once a deadline has passed, no further slot of a call is asked, so asking the slots takes two
// deadlines at most, however many they are. What the first ones have charged then goes back, slot by slot.
func TestSlotsShareADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline, trip = 50 * time.Millisecond, 45 * time.Millisecond
		client := &slotsClient{trip: trip}
		r := newRedis(t, client, &Options{Deadline: deadline})
		start := time.Now()
		err := r.Allow(t.Context(), checksFor(perDay, slotMates(6)...))
		if took := time.Since(start); !errors.Is(err, trouble.ErrUnsent) || took != 4*trip || client.sent.Load() != 4 {
			t.Errorf("got %v after %v and %d scripts, want that the third slot was not asked, and two takes and two Returns", err, took, client.sent.Load())
		}
	})
}
