package algorithms_test

import (
	"context"
	"encoding"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A dawdler is a client that goes on when a command's context has ended.
type dawdler struct {
	*gate
	reads func(redis.Cmder) // the command, before it waits at the gate
	done  chan struct{}     // a value for each command that has returned
}

func (d *dawdler) Process(ctx context.Context, cmd redis.Cmder) error {
	defer func() { d.done <- struct{}{} }()
	d.reads(cmd)
	return d.gate.Process(context.WithoutCancel(ctx), cmd)
}

// marshal reads a command as go-redis does to write it.
func marshal(cmd redis.Cmder) {
	for _, arg := range cmd.Args() {
		if m, ok := arg.(encoding.BinaryMarshaler); ok {
			_, _ = m.MarshalBinary()
		}
	}
}

// What the client has not read when the timeout passes is never executed,
// whatever the client does; what it has read may be, and the error says so.
func TestTimeoutWithdraws(t *testing.T) {
	limit := algorithms.FixedWindow(100, 24*time.Hour)
	for name, tt := range map[string]struct {
		reads   func(redis.Cmder)
		forgets bool // Redis has forgotten the script, and it is to be sent whole
		want    string
		used    int64
	}{
		"not read":              {func(redis.Cmder) {}, false, "timeout failure", 0},
		"its arguments counted": {func(cmd redis.Cmder) { _ = len(cmd.Args()) }, false, "timeout failure", 0},
		"to be sent whole":      {func(redis.Cmder) {}, true, "timeout failure", 0},
		"written":               {marshal, false, "timeout failure executed", 1},
		"traced":                {func(cmd redis.Cmder) { _ = cmd.String() }, false, "timeout failure executed", 1},
		"written whole":         {marshal, true, "timeout failure executed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			take(t, newRedis(t, server.Client(), nil), "usr=0", limit)
			d := &dawdler{gate: newGate(server.Client()), reads: tt.reads, done: make(chan struct{}, 2)}
			r := newRedis(t, d, &algorithms.RedisOptions{Timeout: time.Second})
			if tt.forgets {
				forgetScripts(server)
				go func() {
					d.open <- struct{}{}
					<-d.done
				}()
			}
			_, err := algorithms.Allow(context.Background(), r, "usr=1", limit)
			wantTrouble(t, err, "within the limiter's timeout", tt.want)
			close(d.open)
			<-d.done
			used, err := algorithms.Peek(context.Background(), newRedis(t, server.Client(), nil), "usr=1", limit)
			if got := limit.Burst() - used.Remaining; err != nil || got != tt.used {
				t.Errorf("got %d charged, %v, want %d", got, err, tt.used)
			}
		})
	}
}

// A batch of which one script was executed, and another is to be sent whole, may
// have been executed.
func TestTimeoutDoesNotWithdrawApart(t *testing.T) {
	s := sites["Ring"](t)
	client := s.client(clientSettings[0])
	t.Cleanup(func() { _ = client.Close() })
	h := &trips{pass: make(chan struct{})}
	client.AddHook(h)
	s.each(func(server *redistest.Server) { take(t, newRedis(t, server.Client(), nil), "usr=0", ample) })
	r := newRedis(t, client, &algorithms.RedisOptions{Timeout: time.Second, InFlight: 1})
	keys := neighbours(16)
	var wg sync.WaitGroup
	for i, key := range keys { // the first is on its way, and the others gather
		wg.Go(func() {
			_, err := algorithms.Allow(context.Background(), r, key, ample)
			switch {
			case i == 0 && err != nil:
				t.Errorf("the first: %v", err)
			case i > 0 && (err == nil || !strings.HasSuffix(algorithms.TroubleForTest(err), "executed")):
				t.Errorf("%s: got %v, %s", key, err, algorithms.TroubleForTest(err))
			}
		})
		await(t, "queued", func() bool { return h.n.Load() == 1 && r.QueuedForTest() == i })
	}
	h.pass <- struct{}{}
	await(t, "on its way", func() bool { return h.n.Load() > 1 })
	forgetScripts(s.servers[1])
	h.pass <- struct{}{} // and not once more
	wg.Wait()
	close(h.pass)
	await(t, "the end of what is under way", func() bool { return r.UnderWayForTest() == 0 }) // or go-redis panics
}

// A call of several slots whose first has no connection was not sent either.
func TestTimeoutWithdrawsTheFirstSlot(t *testing.T) {
	client := sites["ClusterClient"](t).client(clientSettings[0])
	t.Cleanup(func() { _ = client.Close() })
	h := &trips{pass: make(chan struct{})}
	client.AddHook(h)
	r := newRedis(t, client, &algorithms.RedisOptions{Timeout: 200 * time.Millisecond})
	var checks []algorithms.Check
	for _, key := range manyKeys(5) {
		checks = append(checks, algorithms.Check{Policy: "p", Key: key, Limit: ample, Cost: 1})
	}
	wantTrouble(t, r.Allow(context.Background(), checks), "within the limiter's timeout", "timeout failure")
	close(h.pass)
	for _, c := range checks {
		c.Cost = 0
		look := []algorithms.Check{c}
		if err := r.Allow(context.Background(), look); err != nil || look[0].Decision.Remaining != ample.Burst() {
			t.Errorf("%s: got %+v, %v, want nothing charged", c.Key, look[0].Decision, err)
		}
	}
}
