// Whether a batch that is late was sent.

package shared

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A command that the client has not read when the deadline passes is never
// executed, whatever the client does. A command that it has read may be, and the
// error says so.
func TestDeadlineWithdraws(t *testing.T) {
	t.Parallel()
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	type test struct {
		reads   func(redis.Cmder)
		forgets bool // Redis has forgotten the script, so it must be sent whole
		want    string
		used    int64
	}
	atOnce(t, map[string]test{
		"not read":              {func(redis.Cmder) {}, false, "timeout failure", 0},
		"its arguments counted": {func(cmd redis.Cmder) { _ = len(cmd.Args()) }, false, "timeout failure", 0},
		"written":               {marshal, false, "timeout failure executed", 1},
		"read as text":          {func(cmd redis.Cmder) { _ = cmd.String() }, false, "timeout failure executed", 1},
		"written whole":         {marshal, true, "timeout failure executed", 1},
	}, func(t *testing.T, tt test) {
		server := redistest.Start(t)
		take(t, newRedis(t, server.Client(), nil), "usr=0", limit, 1)
		c := redistest.Script(server.Client(), redistest.Deaf(), redistest.Inspect(tt.reads), redistest.Hold())
		r := newRedis(t, c, &Options{Deadline: time.Second})
		if tt.forgets {
			do(t, server.Client(), "script", "flush")
			c.Release(1)
		}
		_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
		wantTrouble(t, err, "within the limiter's deadline", tt.want)
		c.Open()
		redistest.Until(t, "the client has returned", c.Idle)
		d := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0)
		if got := limit.Burst() - d.Remaining; got != tt.used {
			t.Errorf("got %d charged, want %d", got, tt.used)
		}
	})
}

// A hook that prints commands, as tracers do, changes nothing: a call that waited for
// a connection was not sent.
func TestTracingSendsNothing(t *testing.T) {
	t.Parallel()
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	server := redistest.Start(t)
	for _, traced := range []bool{false, true} {
		dialed := make(chan struct{})
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-dialed:
				return new(net.Dialer).DialContext(ctx, network, addr)
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
			}
		}})
		t.Cleanup(func() { client.Close() })
		if traced {
			client.AddHook(redistest.Script(nil, redistest.Inspect(func(cmd redis.Cmder) { _ = fmt.Sprint(cmd.Args()...) + cmd.String() })))
		}
		r := newRedis(t, client, &Options{Deadline: 200 * time.Millisecond})
		_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
		wantTrouble(t, err, "within the limiter's deadline", "timeout failure")
		close(dialed)
		redistest.Until(t, "the client has returned", func() bool { return r.redis.underWay() == 0 })
		if d := take(t, newRedis(t, server.Client(), nil), "usr=1", limit, 0); d.Remaining != limit.Burst() {
			t.Errorf("traced %v: got %+v, want nothing charged", traced, d)
		}
	}
}

// slotMates returns keys that share batches in a Cluster of three masters and lie
// in different slots: the first master has a third of the slots.
func slotMates(n int) (keys []string) {
	slots := make(map[uint16]bool)
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("usr=", i)
		if slot := slotOf(key); slot < clusterSlots/3 && !slots[slot] {
			slots[slot] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// If one script of a batch was executed and another must be sent whole, the batch
// may have been executed.
func TestDeadlineDoesNotWithdrawPartly(t *testing.T) {
	t.Parallel()
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	keys := slotMates(16)
	client := redistest.StartCluster(t).Client()
	take(t, newRedis(t, client, nil), keys[0], limit, 1) // the node knows the script
	unknown := func(cmd redis.Cmder) {
		if args := cmd.Args(); strings.Contains(fmt.Sprint(args[3]), "{"+keys[15]+"}") {
			args[1] = strings.Repeat("0", 40)
		}
	}
	hook := redistest.Script(nil, redistest.On("eval", redistest.Hold(), redistest.InTurn(
		redistest.Inspect(func(redis.Cmder) {}), redistest.Inspect(unknown))))
	client.AddHook(hook)
	r := newRedis(t, client, &Options{Deadline: time.Second, InFlight: 1})
	var wg sync.WaitGroup
	for i, key := range keys { // the first is in flight, and the others gather
		wg.Go(func() {
			_, err := algorithms.Allow(context.Background(), r, key, limit)
			switch {
			case i == 0 && err != nil:
				t.Errorf("the first: %v", err)
			case i > 0 && (err == nil || !trouble.Of(err).Executed):
				t.Errorf("%s: got %v, %s, want it executed perhaps", key, err, troubleText(err))
			}
		})
		redistest.Until(t, "the call is queued", func() bool { return hook.Count("eval") == 1 && r.redis.queued() == i })
	}
	hook.Release(1)
	redistest.Until(t, "the others are in flight", func() bool { return hook.Count("eval") == 2 && hook.Held() == 1 })
	hook.Release(1)
	hook.UntilHeld(t, 1) // one script, sent whole
	wg.Wait()
	if n := hook.Count("eval _"); n != 1 {
		t.Errorf("%d scripts were sent whole, want 1", n)
	}
	hook.Open()
	redistest.Until(t, "all batches have ended", func() bool { return r.redis.underWay() == 0 })
}

// A call of several slots whose first script has no connection was not sent
// either.
func TestDeadlineWithdrawsTheFirstSlot(t *testing.T) {
	t.Parallel()
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	client := redistest.StartCluster(t).Client()
	hook := redistest.Script(nil, redistest.On("eval", redistest.Hold()))
	client.AddHook(hook)
	r := newRedis(t, client, &Options{Deadline: 200 * time.Millisecond})
	checks := checksFor(limit, manyKeys(5)...)
	wantTrouble(t, r.Allow(context.Background(), checks), "within the limiter's deadline", "timeout failure")
	hook.Open()
	patient := newRedis(t, client, nil)
	for _, c := range checks {
		if d := take(t, patient, c.Key, limit, 0); d.Remaining != limit.Burst() {
			t.Errorf("%s: got %+v, want nothing charged", c.Key, d)
		}
	}
}
