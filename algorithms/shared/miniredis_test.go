// Miniredis instead of Redis, as in adopters' own tests.

package shared

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/longtest"
)

// startMiniredis returns a miniredis and its client. Both end with the test.
func startMiniredis(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	if strconv.IntSize < 64 {
		t.Skip("on 32 bits miniredis refuses TTLs of more than 24 days")
	}
	m := miniredis.RunT(t)
	return m, clientOf(t, m.Addr(), nil)
}

// A limiter on miniredis keeps every rule.
func TestMiniredisConforms(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	m, client := startMiniredis(t)
	s := redisSubject(client)
	s.Traces = 2 // its Lua is slow
	onRedis := s.New
	s.New = func(tb testing.TB, now func() time.Time) algorithms.Limiter {
		if now == nil { // the keys must expire by themselves, for which miniredis reads all keys
			m.ClockTTL(true)
			tb.Cleanup(func() { m.ClockTTL(false) })
		}
		return onRedis(tb, now)
	}
	limitertest.Run(t, s)
}

// SetTime moves every limit as a clock moves the limits of a Memory.
func TestMiniredisSetTimeMovesLimits(t *testing.T) {
	t.Parallel()
	m, client := startMiniredis(t)
	var mu sync.Mutex // from SetTime to the answer: each trace has a time of its own
	s := redisSubject(client)
	s.New = func(tb testing.TB, now func() time.Time) algorithms.Limiter {
		l := must(tb, client, &Options{Prefix: conformingPrefix, Deadline: time.Minute, Views: ViewsOff})
		l.redis.transport.Clock = now // the calendar is this process's
		return limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			mu.Lock()
			defer mu.Unlock()
			m.SetTime(now())
			return l.Allow(ctx, checks)
		})
	}
	limitertest.Differential(t, limitertest.Memory(), s, 30)
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// A typical test of an adopter: the third request is denied, time passes, the store is emptied.
func TestMiniredisInAnAdoptersTest(t *testing.T) {
	t.Parallel()
	m, client := startMiniredis(t)
	for _, limit := range []algorithms.Limit{
		algorithms.TokenBucket(2, time.Minute), algorithms.LeakyBucket(2, time.Minute), algorithms.SlidingWindowCounter(2, time.Minute),
		algorithms.SlidingWindowLog(2, time.Minute), algorithms.FixedWindow(2, time.Minute), algorithms.PerDay(2, time.UTC),
	} {
		t.Run(limit.String(), func(t *testing.T) {
			noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
			m.SetTime(noon)
			log := &logRecords{}
			a := must(t, client, &Options{Views: ViewsOff, Logger: log.logger(), Deadline: time.Minute})
			b := must(t, client, &Options{Views: ViewsOff, Logger: log.logger(), Deadline: time.Minute})
			if err := a.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := func(l *Limiter, allowed bool, when string) algorithms.Decision {
				t.Helper()
				d := take(t, l, "usr=42", limit, 1)
				if d.Allowed != allowed || d.Source != algorithms.Shared {
					t.Fatalf("%s: got %+v, want allowed %t by Redis", when, d, allowed)
				}
				return d
			}
			want(a, true, "first request")
			want(b, true, "second request, of another instance")
			denied := want(a, false, "third request")
			m.SetTime(noon.Add(denied.RetryAfter - time.Microsecond))
			want(a, false, "too early")
			m.SetTime(noon.Add(denied.RetryAfter))
			want(b, true, "in time")
			m.FlushAll()
			want(a, true, "after FlushAll")
			want(b, true, "after FlushAll")
			want(a, false, "after both")
			for i, message := range log.messages() {
				if log.attrOf(i, "reason") != trouble.Timeout { // of a busy machine
					t.Errorf("got the log line %q, want none", message)
				}
			}
		})
	}
}
