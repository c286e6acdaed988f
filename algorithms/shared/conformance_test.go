// The rules of limiters, kept by limiters that count in Redis.

package shared

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestRedisConforms(t *testing.T) {
	t.Parallel()
	limitertest.Run(t, redisSubject(redistest.Start(t).Client()))
}

func TestRedisAnswersAsMemory(t *testing.T) {
	t.Parallel()
	limitertest.Differential(t, limitertest.Memory(), redisSubject(redistest.Start(t).Client()), 200)
}

// TestRedisAnswersAsMemoryForLong plays more random traces than TestRedisAnswersAsMemory.
func TestRedisAnswersAsMemoryForLong(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	limitertest.Differential(t, limitertest.Memory(), redisSubject(redistest.Start(t).Client()), 1_000)
}

// TestRedisClusterConforms: within a slot, a node decides by the script that TestRedisConforms tests.
func TestRedisClusterConforms(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	limitertest.Run(t, redisSubject(redistest.StartCluster(t).Client()))
}

// TestRedisClusterAcrossSlots: calls of several slots keep their rules, and a cluster answers as a Memory.
func TestRedisClusterAcrossSlots(t *testing.T) {
	t.Parallel()
	s := redisSubject(redistest.StartCluster(t).Client())
	limitertest.AcrossSlots(t, s)
	t.Run("AsMemory", func(t *testing.T) {
		t.Parallel()
		limitertest.Differential(t, limitertest.Memory(), s, 30)
	})
}

// conformingPrefix is not the default one, so that the option is tested, too.
const conformingPrefix = "limits"

func redisSubject(client redis.UniversalClient) limitertest.Subject {
	return limitertest.Subject{
		New: func(tb testing.TB, now func() time.Time) algorithms.Limiter {
			return newRedis(tb, client, &Options{Prefix: conformingPrefix, Now: now})
		},
		Foreign: limitertest.Memory().New,
		Shared:  true,
		Source:  algorithms.Shared,
		Traces:  20,
		Store:   rawRedis{client},
	}
}

// A rawRedis reads and writes what limiters store.
type rawRedis struct{ client redis.UniversalClient }

var _ limitertest.Store = rawRedis{}

// documentedKey returns the key of a check by the documentation, if its parts
// are stored as they are.
func documentedKey(c algorithms.Check) string {
	first, rest, found := strings.Cut(c.Key, "|")
	if found {
		rest = "|" + rest
	}
	return fmt.Sprintf("%s:{%s}%s:%s:%s", conformingPrefix, first, rest, c.Policy, limitertest.Tag(c.Limit.Algorithm()))
}

// Kind implements limitertest.Store.
func (r rawRedis) Kind(tb testing.TB, c algorithms.Check) string {
	tb.Helper()
	kind, err := r.client.Type(tb.Context(), documentedKey(c)).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return kind
}

// Stored implements limitertest.Store.
func (r rawRedis) Stored(tb testing.TB, c algorithms.Check) string {
	tb.Helper()
	var text string
	var elements []string
	var err error
	switch key := documentedKey(c); r.Kind(tb, c) {
	case "string":
		text, err = r.client.Get(tb.Context(), key).Result()
	case "list":
		elements, err = r.client.LRange(tb.Context(), key, 0, -1).Result()
	case "zset":
		var units []redis.Z
		units, err = r.client.ZRangeWithScores(tb.Context(), key, 0, -1).Result()
		for _, unit := range units {
			elements = append(elements, fmt.Sprintf("%.0f/%v", unit.Score, unit.Member))
		}
	case "hash":
		elements, err = r.client.HVals(tb.Context(), key).Result()
	}
	if err != nil && err != redis.Nil {
		tb.Fatal(err)
	}
	return text + strings.Join(elements, " ")
}

// Plant implements limitertest.Store.
func (r rawRedis) Plant(tb testing.TB, c algorithms.Check, kind, raw string) {
	tb.Helper()
	key := documentedKey(c)
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

// TTL implements limitertest.Store.
func (r rawRedis) TTL(tb testing.TB, c algorithms.Check) time.Duration {
	tb.Helper()
	ttl, err := r.client.PTTL(tb.Context(), documentedKey(c)).Result()
	switch {
	case err != nil:
		tb.Fatal(err)
	case ttl == -2: // no key
		return 0
	}
	return ttl
}
