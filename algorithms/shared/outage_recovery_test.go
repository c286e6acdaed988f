// How outages end.

package shared

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestOutageEnds(t *testing.T) {
	t.Parallel()
	var recoveries []*recovery
	for _, cause := range outageCauses {
		recoveries = append(recoveries, newRecovery(t, cause, nil))
	}
	for _, w := range recoveries {
		w.cause.begin(w.target)
	}
	for _, w := range recoveries {
		w.awaitOpen()
	}
	time.Sleep(250 * time.Millisecond)
	for _, w := range recoveries {
		w.end()
	}
	for _, w := range recoveries {
		w.awaitRecovery(t)
	}
}

// A recovery is a target in an outage, and its callers.
type recovery struct {
	*target
	*callers
	cause  outageCause
	ended  time.Time
	before int64 // calls that Redis had decided when the outageCause ended
}

func newRecovery(t *testing.T, cause outageCause, tune func(*redis.Options)) *recovery {
	t.Helper()
	p := newTarget(t, cause, tune)
	limiter := must(t, p.client, &Options{Deadline: unhurried(defaultDeadline)})
	w := &recovery{target: p, cause: cause, callers: startCallers(t, limiter, 4, 5*time.Millisecond, nil)}
	w.awaitShared()
	return w
}

func (w *recovery) end() {
	w.before = w.shared.Load()
	w.cause.end(w.target)
	w.ended = time.Now()
}

func (w *recovery) awaitRecovery(t *testing.T) {
	t.Helper()
	redistest.Until(t, "Redis decides after "+w.cause.name, func() bool { return w.shared.Load() > w.before })
	t.Logf("%s: Redis decides again %v after it ended", w.cause.name, time.Since(w.ended).Round(time.Millisecond))
	w.dismiss()
}

// A pool in which as many dials failed as it has places dials only once a second.
// Until then it repeats the last error.
func TestOutageEndsForASaturatedPool(t *testing.T) {
	t.Parallel()
	const places = 2
	causes := make(map[string]outageCause)
	for _, cause := range outageCauses[:3] { // those in which dials fail
		causes[cause.name] = cause
	}
	atOnce(t, causes, func(t *testing.T, cause outageCause) {
		w := newRecovery(t, cause, func(o *redis.Options) {
			o.PoolSize, o.DialTimeout = places, 50*time.Millisecond
		})
		cause.begin(w.target)
		// Five dials are one failure of the pool.
		redistest.Until(t, "the pool is saturated", func() bool { return w.wire.failed.Load() > 5*places })
		w.awaitOpen()
		w.end()
		w.awaitRecovery(t)
	})
}

// A hand-back says when units were admitted by the clock of decisions, whatever
// Redis's own clock says.
func TestOutageHandsBackByTheClockOfDecisions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		o := &Options{
			Now:      func() time.Time { return time.Now().Add(ahead) },
			Deadline: unhurried(defaultDeadline),
		}
		limiter := must(t, server.Client(), o)
		callers := startCallers(t, limiter, 2, 5*time.Millisecond, nil)
		callers.awaitShared()
		limit, key := algorithms.TokenBucket(10, 30*time.Minute), fmt.Sprint("usr=", ahead)
		server.Stop()
		callers.awaitOpen()
		const local = 5
		for range local {
			if d := take(t, limiter, key, limit, 1); !d.Allowed || d.Source != algorithms.Local {
				t.Errorf("got %+v, want it admitted locally", d)
			}
		}
		server.Continue()
		redistest.Until(t, "all is handed back", func() bool {
			got := limiter.Stats().Fallback
			return got.Open == 0 && got.Owed == 0
		})
		callers.dismiss()
		r := newRedis(t, server.Client(), &Options{Now: o.Now, Deadline: 10 * time.Second})
		d, err := algorithms.AllowN(context.Background(), r, key, limit, 0)
		if err != nil || d.Remaining > limit.Burst()-local {
			t.Errorf("a clock ahead by %v: Redis holds %d units, %v, want the %d that were admitted without it",
				ahead, limit.Burst()-d.Remaining, err, local)
		}
	}
}

// Units that were admitted without Redis are charged before Redis decides again,
// also if an earlier hand-back was refused because the circuit was open.
func TestOutageIsChargedBeforeRedisDecides(t *testing.T) {
	t.Parallel()
	const units = 10
	server := redistest.Start(t)
	limiter := must(t, server.Client(), &Options{Deadline: unhurried(defaultDeadline)})
	callers := startCallers(t, limiter, 2, 5*time.Millisecond, nil)
	callers.awaitShared()
	limit := algorithms.FixedWindow(units, 1_000*time.Hour)
	const key = "usr=spent"
	server.Stop()
	callers.awaitOpen()
	if d := take(t, limiter, key, limit, units); !d.Allowed || d.Source != algorithms.Local {
		t.Errorf("got %+v, want it admitted locally", d)
	}
	time.Sleep(handBackEvery + 200*time.Millisecond)
	server.Continue()
	var d algorithms.Decision
	redistest.Until(t, "Redis decides about the key", func() bool {
		d = take(t, limiter, key, limit, 1)
		return d.Source == algorithms.Shared
	})
	if d.Allowed {
		t.Errorf("got %+v, want it denied: all units were admitted without Redis", d)
	}
}

// A key that Redis has denied stays denied until its RetryAfter, however often
// clients ask.
func TestOutageKeepsDenials(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := must(t, server.Client(), &Options{Deadline: unhurried(defaultDeadline)})
	callers := startCallers(t, limiter, 4, 2*time.Millisecond, nil) // of other keys
	callers.awaitShared()
	limits := everyAlgorithm(5, 1_000*time.Hour) // whose windows do not turn meanwhile
	free := make([]time.Time, len(limits))       // no unit comes back before
	redistest.Until(t, "Redis denies", func() bool {
		all := true
		for i, limit := range limits {
			asked := time.Now()
			d := take(t, limiter, "usr=spent", limit, 1)
			free[i] = asked.Add(d.RetryAfter)
			all = all && !d.Allowed && d.Source == algorithms.Shared
		}
		return all
	})
	server.Stop()
	callers.awaitOpen()
	time.Sleep(freshFor) // until then the cache answers by itself
	for range 100 {
		for i, limit := range limits {
			d := take(t, limiter, "usr=spent", limit, 1)
			if wait := time.Until(free[i]); d.Allowed || d.RetryAfter < wait-time.Second || d.RetryAfter > wait+10*time.Second {
				t.Fatalf("%v: got %+v, want it denied, and to wait for %v", limit, d, wait)
			}
		}
		time.Sleep(time.Millisecond)
	}
	server.Continue()
}
