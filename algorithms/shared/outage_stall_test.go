// Sums after a Redis that stalled, died or lost replies: what was admitted, what
// is charged, and what is unknown.

package shared

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Units of calls that fail closed, and that were refused, are returned when Redis
// resumes from a stall. Then the key has room for the rest of its limit.
func TestStallChargesNoRefusedCalls(t *testing.T) {
	t.Parallel()
	limits := map[string]algorithms.Limit{
		"log": algorithms.SlidingWindowLog(5, time.Hour), "bucket": algorithms.TokenBucket(5, time.Hour),
	}
	atOnce(t, limits, func(t *testing.T, limit algorithms.Limit) {
		server := redistest.Start(t)
		limiter := must(t, clientOf(t, server.Addr(), nil), &Options{Deadline: unhurried(defaultDeadline)})
		redistest.Until(t, "Redis decides", func() bool {
			return take(t, limiter, "usr=before", ample, 1).Source == algorithms.Shared
		})
		direct := newRedis(t, server.Client(), nil)
		for _, key := range []string{"usr=1", "usr=2", "usr=3"} {
			login := func(int) algorithms.Check {
				return algorithms.Check{Policy: "default", Key: key, Limit: limit, Cost: 1, Fail: algorithms.FailClosed, Exact: true}
			}
			server.Stop()
			c := startArrivals(t, limiter, 10*time.Millisecond, login)
			time.Sleep(unhurried(5 * defaultDeadline))
			refused := func() int { return len(c.of(func(a *arrival) bool { return a.err != nil })) }
			redistest.Until(t, "calls are refused", func() bool { return refused() >= 5 })
			c.dismiss()
			server.Continue()
			redistest.Until(t, "nothing is under way", func() bool { return limiter.redis.underWay() == 0 })
			redistest.Until(t, "the circuit is closed", func() bool { return limiter.Stats().Fallback.Open == 0 })
			admitted := c.units()
			redistest.UntilEmpty(t, "Redis holds what was admitted", func() string {
				// On a busy machine a return itself may time out. Stats counts it. Redis may execute it later.
				got, failed := used(t, direct, key, limit), limiter.Stats().Fallback.ReturnsLost
				if got < admitted || got > admitted && failed == 0 {
					return fmt.Sprintf("it holds %d units, and %d were admitted", got, admitted)
				}
				return ""
			})
		}
	})
}

// A trial is three limits of one limiter, each with two callers. They take 1 and 3
// units of a key that has more.
type trial struct {
	limiter *Limiter
	limits  []algorithms.Limit
	calls   []*arrivals // by limit, then by cost
}

func startTrial(t *testing.T, l *Limiter) *trial {
	tr := &trial{limiter: l, limits: []algorithms.Limit{
		algorithms.TokenBucket(1, time.Hour).WithBurst(9_000),
		algorithms.FixedWindow(9_000, 1_000*time.Hour),
		algorithms.SlidingWindowLog(9_000, time.Hour),
	}}
	for _, limit := range tr.limits {
		for _, cost := range []int64{1, 3} {
			tr.calls = append(tr.calls, startArrivals(t, l, 20*time.Millisecond, func(int) algorithms.Check {
				return algorithms.Check{Policy: "default", Key: "usr=1", Limit: limit, Cost: cost}
			}))
		}
	}
	for _, c := range tr.calls {
		c.awaitRedis(t, time.Time{})
	}
	return tr
}

// awaitLocal waits until calls were decided without Redis. A busy machine may send none
// for a while.
func (tr *trial) awaitLocal(t *testing.T) {
	t.Helper()
	redistest.Until(t, "a call is decided locally", func() bool { return tr.limiter.Stats().Fallback.Local > 0 })
}

// settle ends the calls, and waits until nothing is under way and nothing is owed.
func (tr *trial) settle(t *testing.T) {
	t.Helper()
	now := time.Now()
	for _, c := range tr.calls {
		c.awaitRedis(t, now)
		c.dismiss()
	}
	redistest.Until(t, "all is handed back", func() bool {
		s := tr.limiter.Stats().Fallback
		return s.Open == 0 && s.Owed == 0 && tr.limiter.redis.underWay() == 0
	})
}

// check fails the test unless Redis holds the units that were admitted, except
// for those that are unknown or lost. No unit is charged twice.
func (tr *trial) check(t *testing.T, direct Client) {
	t.Helper()
	r := newRedis(t, direct, nil)
	var admitted, charged int64
	text := ""
	for i, limit := range tr.limits {
		a, c := tr.calls[2*i].units()+tr.calls[2*i+1].units(), used(t, r, "usr=1", limit)
		text += fmt.Sprintf(" %v: %d admitted, %d charged;", limit.Algorithm(), a, c)
		admitted, charged = admitted+a, charged+c
	}
	stats := tr.limiter.Stats().Fallback
	t.Logf("%s %+v", text, stats)
	if least := admitted - int64(stats.Lost) - stats.Unknown; charged > admitted || charged < least {
		t.Errorf("got %d units charged, want %d to %d", charged, least, admitted)
	}
	if stats.Unknown < 0 {
		t.Errorf("got %+v, want no negative count", stats)
	}
}

// After a stall, Redis executes what it received before. A unit is unknown also if the
// deadline ended between the client's start and its first byte, which a busy machine
// brings about: such a unit never arrives.
func TestStallKeepsTheSum(t *testing.T) {
	t.Parallel()
	type test struct {
		stall     time.Duration
		instances int // a share of several counts a window as a bucket
	}
	atOnce(t, map[string]test{
		"0.2 s": {200 * time.Millisecond, 1}, "1 s, one of three": {time.Second, 3}, "5 s": {5 * time.Second, 1},
	}, func(t *testing.T, tt test) {
		server := redistest.Start(t)
		tr := startTrial(t, must(t, clientOf(t, server.Addr(), nil), &Options{Instances: tt.instances}))
		server.Stop()
		time.Sleep(tt.stall)
		tr.awaitLocal(t)
		server.Continue()
		tr.settle(t)
		tr.check(t, server.Client())
	})
}

// An outage may have lost requests or replies.
func TestOutageKeepsTheSumToWithinTheUnknown(t *testing.T) {
	t.Parallel()
	causes := map[string]outageCause{}
	for _, cause := range []outageCause{
		byServer("killed", (*redistest.Server).Kill, (*redistest.Server).Restart),
		byProxy("replies cut", redistest.Cut().Containing("evalsha")),
		byProxy("replies swallowed", redistest.Swallow().Containing("evalsha")),
		byProxy("black hole", redistest.BlackHole()),
		byProxy("slow to Redis", redistest.DelayRequests(100*time.Millisecond)),
		byProxy("slow from Redis", redistest.Delay(100*time.Millisecond)),
	} {
		causes[cause.name] = cause
	}
	atOnce(t, causes, func(t *testing.T, cause outageCause) {
		p := newTarget(t, cause, nil, "--appendonly", "yes", "--appendfsync", "always")
		tr := startTrial(t, must(t, p.client, nil))
		cause.begin(p)
		time.Sleep(time.Second)
		tr.awaitLocal(t)
		cause.end(p)
		tr.settle(t)
		tr.check(t, p.server.Client())
	})
}

// README's client is redis.NewClient with an address. A Redis that hangs holds a lone
// caller for its deadline, although the client waits for seconds.
func TestDefaultClientInAStall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	l := must(t, client, &Options{Deadline: 100 * time.Millisecond, Views: ViewsOff})
	limit := algorithms.TokenBucket(10, time.Hour)
	redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=1", limit, 0).Source == algorithms.Shared })
	server.Stop()
	start := time.Now()
	d := take(t, l, "usr=1", limit, 1)
	if took := time.Since(start); d.Source != algorithms.Local || took > 2*time.Second {
		t.Errorf("got %+v after %v of a Redis that is stopped, want a local decision at the deadline", d, took)
	}
	server.Continue()
}
