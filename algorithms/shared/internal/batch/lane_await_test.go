// Workers that await the callers that they have woken, and callers that need not wait.

package batch

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A slowClient answers each command with an error of Redis, after a round trip.
type slowClient struct{ trip time.Duration }

func (c slowClient) Process(_ context.Context, cmd redis.Cmder) error {
	for _, arg := range cmd.Args() {
		if name, ok := arg.(*scriptName); ok {
			_, _ = name.MarshalBinary()
		}
	}
	time.Sleep(c.trip)
	cmd.SetErr(errAnswer)
	return errAnswer
}

// While a worker awaits callers, calls start no batch. 1 ms after the answer they
// start one, with the calls that waited.
func TestCallsJoinAWorkerThatAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(redistest.Script(nil, redistest.Fail(errAnswer)), Options{})
		l.awaiting, l.lastEnd = 1, time.Now()
		var callers sync.WaitGroup
		ask := func() { callers.Go(func() { _, _ = takeOne(context.Background(), l) }); synctest.Wait() }
		sent := func(want uint64) {
			t.Helper()
			if got := l.scripts(); got != want {
				t.Errorf("got %d scripts, want %d", got, want)
			}
		}
		ask()
		sent(0)
		time.Sleep(joinFor - 1)
		ask()
		sent(0)
		time.Sleep(time.Nanosecond)
		ask()
		sent(1)
		callers.Wait()
	})
}

// A worker waits until all callers that it has woken call again, though each of them is slow to do
// so. It does not wait for callers that stay away.
func TestWorkersAwaitTheirCallers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that yields let callers run in turn
	for _, tt := range []struct{ woken, least, most int }{{8, 8, 8}, {9, 8, 8}, {3, 3, 7}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLane(slowClient{}, Options{})
			l.awaiting = 1
			for i := range 8 {
				go func() {
					for range 6 * (i + 1) {
						runtime.Gosched()
					}
					l.mu.Lock()
					defer l.mu.Unlock()
					l.queue = append(l.queue, new(Group))
				}()
			}
			l.await(tt.woken)
			l.mu.Lock()
			if got := len(l.queue); got < tt.least || got > tt.most || l.awaiting != 0 {
				t.Errorf("a worker that woke %d: %d of 8 callers have called, %d workers await; want %d to %d, and none", tt.woken, got, l.awaiting, tt.least, tt.most)
			}
			l.mu.Unlock()
			synctest.Wait()
			l.queue = nil
		})
	}
}

// A worker does not wait for long, though calls keep coming.
func TestWorkersAwaitForAShortTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := newLane(slowClient{}, Options{})
	l.awaiting = 1
	stop, stopped := make(chan struct{}), make(chan bool)
	go func() {
		for begin := time.Now(); time.Since(begin) < 10*time.Second; runtime.Gosched() {
			select {
			case <-stop:
				stopped <- true
				return
			default:
			}
			l.mu.Lock()
			l.queue = append(l.queue, nil)
			l.mu.Unlock()
		}
		<-stop
		stopped <- false
	}()
	l.await(1 << 30)
	close(stop)
	if !<-stopped {
		t.Error("a worker awaited callers for as long as calls came")
	}
	l.queue = nil
}

// No call is forgotten, whether it comes before, while or after a worker awaits callers.
func TestAwaitingForgetsNoCall(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l := newLane(slowClient{trip: 300 * time.Microsecond}, Options{Deadline: 50 * time.Millisecond})
			var callers sync.WaitGroup
			for i := range uint64(8) {
				callers.Go(func() {
					random := rand.New(rand.NewPCG(seed, i))
					for range 100 {
						if took, err := takeOne(context.Background(), l); trouble.Of(err).Effect == trouble.Failure {
							t.Fatalf("a call took %v: %v", took, err)
						}
						time.Sleep(time.Duration(random.IntN(3)*random.IntN(400)) * time.Microsecond)
					}
				})
			}
			callers.Wait()
			synctest.Wait()
			if l.awaiting != 0 || l.inFlight != 0 || len(l.queue) != 0 {
				t.Errorf("seed %d: %d workers await, %d batches in flight, %d calls wait; want none", seed, l.awaiting, l.inFlight, len(l.queue))
			}
		})
	}
}

// While few calls are in flight, a caller sends its own batch, though no more batches
// are allowed. While no round trip is known, it does not.
func TestFewCallsTravelAlone(t *testing.T) {
	for _, tt := range []struct {
		floor       int64 // µs
		own, queued int
	}{{60, fewCalls, 1}, {unknown, fewInFlight, fewCalls - fewInFlight + 1}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLane(slowClient{trip: time.Second}, Options{})
			l.transport.direct = l.transport.workers
			l.flight.floor.least(monotonic(), tt.floor)
			var callers sync.WaitGroup
			for range fewCalls + 1 {
				callers.Go(func() { _, _ = takeOne(t.Context(), l) })
				synctest.Wait()
			}
			l.mu.Lock()
			if l.flying != tt.own || l.inFlight != tt.own || len(l.queue) != tt.queued {
				t.Errorf("a floor of %d µs: %d calls in %d batches are in flight, and %d wait, want %d, as many, and %d",
					tt.floor, l.flying, l.inFlight, len(l.queue), tt.own, tt.queued)
			}
			l.mu.Unlock()
			callers.Wait()
			synctest.Wait()
			if l.flying != 0 || l.inFlight != 0 {
				t.Errorf("afterwards %d calls and %d batches are in flight", l.flying, l.inFlight)
			}
		})
	}
}
