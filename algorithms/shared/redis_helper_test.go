// What the tests of the Redis layer share.

package shared

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// clientOf returns a client of a server with go-redis's default options, except
// the options that set changes. Its timeouts are longer than any deadline of a
// test.
func clientOf(tb testing.TB, addr string, set func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{Addr: addr}
	if set != nil {
		set(o)
	}
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// clientWithPermissions returns a client of a user that has only some
// permissions.
func clientWithPermissions(t *testing.T, server interface {
	Addr() string
	Client() *redis.Client
}, permissions ...string,
) *redis.Client {
	t.Helper()
	args := []any{"acl", "setuser", "limiter", "on", ">secret"}
	for _, permission := range permissions {
		args = append(args, permission)
	}
	do(t, server.Client(), args...)
	return clientOf(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "limiter", "secret" })
}

// command runs a command that a test depends on.
func do(tb testing.TB, c *redis.Client, args ...any) {
	tb.Helper()
	if err := c.Do(tb.Context(), args...).Err(); err != nil {
		tb.Fatalf("%v: %v", args, err)
	}
}

// statsOf returns the figures of a limiter that is the Redis layer alone.
func statsOf(l *Limiter) (s algorithms.Stats) {
	l.redis.addStats(&s)
	l.report.addStats(&s)
	return s
}

// failures returns how many scripts have failed.
func failuresOf(l *Limiter) (n uint64) {
	for _, failed := range statsOf(l).Redis.Errors {
		n += failed
	}
	return n
}

// laneMap returns the lanes by the addresses of their masters.
func (r *redisLayer) laneMap() map[string]*batch.Lane {
	all := make(map[string]*batch.Lane)
	for addr, l := range r.lanes.Range {
		all[addr.(string)] = l.(*batch.Lane)
	}
	return all
}

// queued returns how many groups wait for a place in flight.
func (r *redisLayer) queued() (n int) {
	for _, l := range r.laneMap() {
		queued, _, _ := l.Load()
		n += queued
	}
	return n
}

// underWay returns how many batches the client still has, including stuck ones.
func (r *redisLayer) underWay() (n int) {
	for _, l := range r.laneMap() {
		_, underWay, _ := l.Load()
		n += underWay
	}
	return n
}

// askAll lets every key take one unit at once, and returns errors and decisions
// by key.
func askAll(ctx context.Context, l algorithms.Limiter, limit algorithms.Limit, keys []string) (map[string]error, map[string]algorithms.Decision) {
	var mu sync.Mutex
	errs, decisions := make(map[string]error), make(map[string]algorithms.Decision)
	var wg sync.WaitGroup
	for _, key := range keys {
		wg.Go(func() {
			d, err := algorithms.Allow(ctx, l, key, limit)
			mu.Lock()
			defer mu.Unlock()
			errs[key], decisions[key] = err, d
		})
	}
	wg.Wait()
	return errs, decisions
}

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "usr=" + strconv.Itoa(i)
	}
	return keys
}

// checksFor returns a take of one unit from each key.
func checksFor(limit algorithms.Limit, keys ...string) []algorithms.Check {
	checks := make([]algorithms.Check, len(keys))
	for i, key := range keys {
		checks[i] = algorithms.Check{Policy: "default", Key: key, Limit: limit, Cost: 1}
	}
	return checks
}

const unforeseenText = "unavailable failure executed"

// troubleText returns the table's row for an error: its reason, its effect on
// the circuit, and whether it allows a retry or was executed.
func troubleText(err error) string {
	row := trouble.Of(err)
	words := []string{cmp.Or(row.Reason, "none"), [...]string{"success", "failure", "none"}[row.Effect]}
	if row.Retry {
		words = append(words, "retry")
	}
	if row.Executed {
		words = append(words, "executed")
	}
	return strings.Join(words, " ")
}

func wantTrouble(t *testing.T, err error, says, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want an error that says %q", err, says)
	}
	if got := troubleText(err); got != want {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

// probeKeys returns the stored keys of Ready without their prefix, and the
// Cluster slot of each.
func probeKeys() map[string]int {
	slots := make(map[string]int)
	for _, checks := range probes() {
		for i := range checks {
			var it step.Item
			if err := checks[i].Item(&it); err != nil {
				panic(err)
			}
			key := (&redisLayer{}).stored(&it.Key)
			slots[key] = int(slotOf(hashTag(key)))
		}
	}
	return slots
}
