// Overrides of all instances, in Redis.

package overrides

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	defaultPrefix = "penstock"
	maxPrefix     = 64

	// pollEvery is how often other instances' edits are looked for: half of the
	// second that is promised, the other half being for reading them.
	pollEvery = 500 * time.Millisecond

	// sweepEvery is how often what has ended is removed.
	sweepEvery = time.Minute
)

// A Redis holds the overrides of all instances that use the same Redis and
// prefix. An edit is in force when it returns here, and within a second
// elsewhere. Each instance has all overrides in memory, about 200 bytes each,
// and looks twice a second, with one small command, for policies that have
// changed. Of those it reads all overrides, in parts that hold Redis up for
// about a millisecond: 100 000 take most of a second, which comes on top, and so
// what changes all the time should be few.
//
// While Redis is in trouble, the overrides that were read last stay in force,
// but for those that end. One that cannot be read is as if it had not been
// written: the last good one stays. Redis that has lost its data has lost the
// overrides, too: they have no TTL, but live no longer than it does.
//
// In Redis Cluster they are all in one slot. The user needs the rights to EVAL,
// EXISTS, HDEL, HEXISTS, HGET, HGETALL, HLEN, HSCAN and HSET. A Redis is safe for concurrent
// use, and must be closed.
type Redis struct {
	client Client
	prefix string
	logger *slog.Logger
	table  atomic.Pointer[table]

	reading chan struct{}  // with room for one: orders readings, and guards bad and failing
	bad     map[string]int // of the last reading: by policy
	failing bool

	stats struct {
		bad             atomic.Int64
		reads, failures atomic.Uint64
	}

	closing context.Context
	cancel  context.CancelFunc
	closed  chan struct{}
}

// RedisOptions tune a [Redis].
type RedisOptions struct {
	// Prefix begins the stored keys; empty means "penstock". It must be of
	// printable ASCII without spaces and braces, at most 64 bytes.
	Prefix string

	// Logger receives a line for overrides that cannot be read, and when trouble
	// with Redis begins and ends; nil means slog.Default().
	Logger *slog.Logger
}

// A Client sends one command: every client of go-redis does.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// NewRedis returns the overrides that are in Redis; nil options mean the
// defaults. It waits for nothing: until Redis has answered there are none.
// [Redis.Refresh] waits for that.
func NewRedis(client Client, o *RedisOptions) (*Redis, error) {
	if o == nil {
		o = &RedisOptions{}
	}
	r := &Redis{
		client: client, prefix: cmp.Or(o.Prefix, defaultPrefix), logger: cmp.Or(o.Logger, slog.Default()),
		bad: make(map[string]int), closed: make(chan struct{}), reading: make(chan struct{}, 1),
	}
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("overrides: the Redis client is nil"))
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }
	if len(r.prefix) > maxPrefix || strings.ContainsFunc(r.prefix, odd) {
		errs = append(errs, fmt.Errorf("overrides: prefix %q: want at most %d bytes of printable ASCII without spaces and braces", r.prefix, maxPrefix))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r.table.Store(new(table))
	r.closing, r.cancel = context.WithCancel(context.Background())
	go r.poll()
	return r, nil
}

// Find returns the override in force for a key, and whether there is one; for
// the key [Everyone], what holds for all. It waits for nothing, and allocates
// nothing.
func (r *Redis) Find(policy, key string) (Override, bool) {
	if o := r.table.Load().find(policy, key); o != nil {
		return *o, true
	}
	return Override{}, false
}

// Count returns how many overrides of a policy have not ended, as far as this
// process knows, that of everyone included. It waits for nothing.
func (r *Redis) Count(policy string) int { return r.table.Load().policies[policy].count() }

// Refresh reads what has changed in Redis. A service that must not serve before
// it knows its overrides calls it at start.
func (r *Redis) Refresh(ctx context.Context) error {
	select { // the one that reads may wait for a Redis that hangs
	case r.reading <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("overrides: %w", ctx.Err())
	}
	defer func() { <-r.reading }()
	err := r.read(ctx)
	if ctx.Err() == nil {
		r.report(err)
	}
	return err
}

// report logs where trouble begins and ends; the caller reads.
func (r *Redis) report(err error) {
	if err != nil {
		r.stats.failures.Add(1)
	}
	switch failing := err != nil; {
	case failing && !r.failing:
		r.logger.Warn("ratelimit: overrides cannot be read; the last known ones stay in force", "error", err)
	case !failing && r.failing:
		r.logger.Info("ratelimit: overrides can be read again")
	}
	r.failing = err != nil
}

// poll is the one goroutine of r.
func (r *Redis) poll() {
	defer close(r.closed)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for swept := time.Now(); ; {
		_ = r.Refresh(r.closing) // has been reported
		if time.Since(swept) >= sweepEvery {
			r.sweep(r.closing)
			swept = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.closing.Done():
			return
		}
	}
}

// Close ends the goroutine, and waits for it: as long as the client waits for an
// answer, at most. What was read last stays in force. Close may be called more
// than once; the client stays the caller's.
func (r *Redis) Close() error {
	r.cancel()
	<-r.closed
	return nil
}

// Stats are counts since the start, but for those that say otherwise.
type Stats struct {
	Overrides int    // in memory now, some of them ended
	Bad       int    // that could not be read, of those in Redis now
	Reads     uint64 // of a policy's overrides
	Failures  uint64 // of looks at Redis
}

// Stats returns what has happened so far.
func (r *Redis) Stats() Stats {
	return Stats{
		Overrides: r.table.Load().size(), Bad: int(r.stats.bad.Load()),
		Reads: r.stats.reads.Load(), Failures: r.stats.failures.Load(),
	}
}
