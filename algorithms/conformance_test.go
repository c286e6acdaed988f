package algorithms_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/limitertest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	s := memorySubject()
	client := redistest.Start(t).Client()
	s.Foreign = redisSubject(client).New
	limitertest.Run(t, s)
}

func TestMemoryIsIdeal(t *testing.T) {
	t.Parallel()
	limitertest.Ideal(t, memorySubject(), 40)
}

func TestRedisConforms(t *testing.T) {
	t.Parallel()
	limitertest.Run(t, redisSubject(redistest.Start(t).Client()))
}

// Leases change nothing for keys that are not hot.
func TestStackWithLeasesConforms(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	s := redisSubject(client)
	s.New = func(tb testing.TB, now func() time.Time) algorithms.Limiter {
		o := &algorithms.Options{Lease: &algorithms.LeaseOptions{HotAt: 100_000}, DenyCacheKeys: algorithms.DenyCacheOff}
		if now == nil {
			o.Redis.Prefix = prefix
			o.Redis.Timeout, o.Fallback.Deadline = time.Minute, time.Minute // what is decided locally is not in Redis
			stack := algorithms.Must(algorithms.NewShared(client, o))
			tb.Cleanup(func() {
				if err := stack.Close(); err != nil {
					tb.Error(err)
				}
			})
			return stack
		}
		// Over the clock of a trace NewShared leases nothing, so this is made by hand.
		r := algorithms.Must(algorithms.NewRedis(client, &algorithms.RedisOptions{Prefix: prefix, Now: now, Timeout: time.Minute}))
		stack := algorithms.NewStackForTest(r, o)
		tb.Cleanup(func() { _ = stack.Close() })
		return stack
	}
	limitertest.Run(t, s)
}

func TestRedisAnswersAsMemory(t *testing.T) {
	t.Parallel()
	limitertest.Differential(t, memorySubject(), redisSubject(redistest.Start(t).Client()), 400)
}

func TestRedisClusterConforms(t *testing.T) {
	t.Parallel()
	s := redisSubject(redistest.StartCluster(t).Client())
	limitertest.Run(t, s)
	t.Run("AcrossSlots", func(t *testing.T) {
		t.Parallel()
		limitertest.AcrossSlots(t, s)
	})
	t.Run("AsMemory", func(t *testing.T) {
		t.Parallel()
		limitertest.Differential(t, memorySubject(), s, 30)
	})
}

func memorySubject() limitertest.Subject {
	return limitertest.Subject{
		New: func(tb testing.TB, now func() time.Time) algorithms.Limiter {
			m, err := algorithms.NewMemory(&algorithms.MemoryOptions{Now: exceptForSweeps(now)})
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				if err := m.Close(); err != nil {
					tb.Error(err)
				}
			})
			return m
		},
		Source: algorithms.Local,
		Traces: 300,
	}
}

// exceptForSweeps returns a clock that stands still for the goroutine that forgets what is full. Traces set the clock
// ahead and back; what would have been forgotten in between depends on real time.
func exceptForSweeps(now func() time.Time) func() time.Time {
	if now == nil {
		return nil
	}
	return func() time.Time {
		var callers [4]uintptr
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
		for {
			frame, more := frames.Next()
			if strings.HasSuffix(frame.Function, ".sweep") {
				return time.UnixMicro(0)
			}
			if !more {
				return now()
			}
		}
	}
}

// prefix is not the default one, so that the option is tested, too.
const prefix = "limits"

func redisSubject(client redis.UniversalClient) limitertest.Subject {
	raw := rawRedis{client}
	return limitertest.Subject{
		New: func(tb testing.TB, now func() time.Time) algorithms.Limiter {
			r, err := algorithms.NewRedis(client, &algorithms.RedisOptions{Prefix: prefix, Now: now, Timeout: time.Minute})
			if err != nil {
				tb.Fatal(err)
			}
			return r
		},
		Foreign: memorySubject().New,
		Shared:  true,
		Source:  algorithms.Shared,
		Traces:  20,
		Stored:  raw.stored,
		Plant:   raw.plant,
		Kind:    raw.kind,
		TTL:     raw.ttl,
	}
}

// A rawRedis reads and writes what limiters store.
type rawRedis struct{ client redis.UniversalClient }

var tags = map[string]string{
	"token-bucket":           "tb",
	"leaky-bucket":           "lb",
	"sliding-window-counter": "sc",
	"sliding-window-log":     "sl",
	"fixed-window":           "fw",
	"calendar-window":        "cw",
	"concurrent":             "co",
}

// storedKey returns the documented key of a check, for keys that are stored as they are.
func storedKey(c algorithms.Check) string {
	first, rest, found := strings.Cut(c.Key, "|")
	if found {
		rest = "|" + rest
	}
	return fmt.Sprintf("%s:{%s}%s:%s:%s", prefix, first, rest, c.Policy, tags[c.Limit.Algorithm().String()])
}

func (r rawRedis) kind(tb testing.TB, c algorithms.Check) string {
	tb.Helper()
	kind, err := r.client.Type(tb.Context(), storedKey(c)).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return kind
}

func (r rawRedis) stored(tb testing.TB, c algorithms.Check) string {
	tb.Helper()
	var text string
	var elements []string
	var err error
	switch kind := r.kind(tb, c); kind {
	case "string":
		text, err = r.client.Get(tb.Context(), storedKey(c)).Result()
	case "list":
		elements, err = r.client.LRange(tb.Context(), storedKey(c), 0, -1).Result()
		text = strings.Join(elements, " ")
	case "zset":
		var units []redis.Z
		units, err = r.client.ZRangeWithScores(tb.Context(), storedKey(c), 0, -1).Result()
		for _, unit := range units {
			elements = append(elements, fmt.Sprintf("%.0f/%v", unit.Score, unit.Member))
		}
		text = strings.Join(elements, " ")
	case "hash":
		elements, err = r.client.HVals(tb.Context(), storedKey(c)).Result()
		text = strings.Join(elements, " ")
	}
	if err != nil && err != redis.Nil {
		tb.Fatal(err)
	}
	return text
}

func (r rawRedis) plant(tb testing.TB, c algorithms.Check, kind, raw string) {
	tb.Helper()
	key := storedKey(c)
	err := r.client.Del(tb.Context(), key).Err()
	if err != nil {
		tb.Fatal(err)
	}
	switch kind {
	case "string":
		err = r.client.Set(tb.Context(), key, raw, 0).Err()
	case "list":
		err = r.client.RPush(tb.Context(), key, strings.Fields(raw)).Err()
	case "zset":
		for _, field := range strings.Fields(raw) {
			score, member, _ := strings.Cut(field, "/")
			if err = r.client.Do(tb.Context(), "zadd", key, score, member).Err(); err != nil {
				break
			}
		}
	case "hash":
		err = r.client.HSet(tb.Context(), key, "field", raw).Err()
	default:
		tb.Fatalf("there is no kind %q", kind)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func (r rawRedis) ttl(tb testing.TB, c algorithms.Check) time.Duration {
	tb.Helper()
	ttl, err := r.client.PTTL(tb.Context(), storedKey(c)).Result()
	switch {
	case err != nil:
		tb.Fatal(err)
	case ttl == -2: // no key
		return 0
	}
	return ttl
}
