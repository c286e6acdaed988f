package algorithms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Client sends one command: every client of go-redis does.
//
// A ClusterClient works, and a Ring; a Ring moves keys when a shard leaves or
// comes back, and what was counted on them starts anew.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Redis limits together with every process that uses the same Redis and
// prefix. A call is one script, and so one atomic step and one round trip.
//
// In Redis Cluster, checks of one principal share a slot, and are one script.
// Checks in several slots are taken slot by slot, in order, and given back if a
// later slot denies. That never admits too much. For the moment between, it can
// deny others a unit that comes back; and a process that dies in between leaves
// what it took charged, until it drains.
//
// What may have been executed is never sent twice, whatever retries the client
// is configured for: a charge is made once, or its call ends in an error.
//
// A Redis is safe for concurrent use. It starts no goroutines.
type Redis struct {
	client    Client
	prefix    string
	now       func() time.Time
	observe   func(Event)
	placement atomic.Uint32 // a placement
	stats     redisCounters
}

var _ Limiter = (*Redis)(nil)

// RedisOptions tune a [Redis].
type RedisOptions struct {
	// Prefix begins every stored key; empty means "penstock". It must be of
	// printable ASCII without spaces and braces, at most 64 bytes.
	Prefix string

	// Now is the clock of decisions; nil means that of the Redis server, which
	// is the same for all instances. Instances whose clocks differ by more
	// than 100 ms see each other's states as being from the future, and repair
	// them.
	Now func() time.Time

	// Observe, if not nil, is told what happens. It must be quick, and safe
	// for concurrent use.
	Observe func(Event)
}

const (
	defaultPrefix = "penstock"
	maxPrefix     = 64

	// returnTimeout bounds giving back what a denied call took elsewhere: its
	// own context may have ended.
	returnTimeout = time.Second
)

// NewRedis returns a limiter that counts in Redis; nil options mean the
// defaults. It sends nothing: whether Redis answers is for the first call to
// see. Redis 6.2 or later, or Valkey, is needed.
func NewRedis(client Client, o *RedisOptions) (*Redis, error) {
	if o == nil {
		o = &RedisOptions{}
	}
	r := &Redis{client: client, prefix: o.Prefix, now: o.Now, observe: o.Observe}
	if r.prefix == "" {
		r.prefix = defaultPrefix
	}
	if r.observe == nil {
		r.observe = func(Event) {}
	}
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("algorithms: the Redis client is nil"))
	}
	if len(r.prefix) > maxPrefix || strings.ContainsFunc(r.prefix, odd) {
		errs = append(errs, fmt.Errorf("algorithms: prefix %q: want at most %d bytes of printable ASCII without spaces and braces", r.prefix, maxPrefix))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r.placement.Store(uint32(placementOf(client)))
	return r, nil
}

func odd(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }

// Allow implements [Limiter]. An error is ErrInvalid's, the context's, the
// client's, or says that a key holds something that is not a limiter's.
func (r *Redis) Allow(ctx context.Context, checks []Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	c, err := r.newCall(checks)
	if err != nil {
		return err
	}
	r.stats.checks.Add(uint64(len(checks)))
	err = c.run(ctx)
	if err != nil && redis.HasErrorPrefix(err, "CROSSSLOT") && r.placement.CompareAndSwap(uint32(together), uint32(bySlot)) {
		// A Cluster behind a client of another type. It has executed nothing.
		c.split()
		err = c.run(ctx)
	}
	if err != nil {
		r.stats.errors.Add(1)
		r.observe(Event{Kind: EventError, Err: err})
		return fmt.Errorf("algorithms: redis: %w", err)
	}
	for i := range c.items {
		it := &c.items[i]
		if it.answer.missing {
			r.stats.missing.Add(1)
		}
		checks[i].Decision = it.decision(it.now, Shared)
	}
	return nil
}

// RedisStats are counts since the start.
type RedisStats struct {
	Checks      uint64 // that were asked
	Scripts     uint64 // that were sent, one round trip each
	ScriptLoads uint64 // that had to be sent whole
	Errors      uint64 // of calls that made no decision
	// Missing are checks that found no stored state. New keys do, and keys
	// that were evicted or flushed: a jump means that Redis forgets limits.
	Missing uint64
}

type redisCounters struct{ checks, scripts, loads, errors, missing atomic.Uint64 }

// Stats returns what has happened so far.
func (r *Redis) Stats() RedisStats {
	return RedisStats{
		Checks:      r.stats.checks.Load(),
		Scripts:     r.stats.scripts.Load(),
		ScriptLoads: r.stats.loads.Load(),
		Errors:      r.stats.errors.Load(),
		Missing:     r.stats.missing.Load(),
	}
}
