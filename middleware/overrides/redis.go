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

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
	"github.com/penstock-go/penstock/internal/logwriter"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

const maxPrefix = 64 // bytes

// A Redis holds the overrides of all instances that use the same Redis and
// prefix. The zero Redis panics. It is safe for concurrent use. Close it.
//
// An edit is in force on this instance when it returns, and on the others
// within a second. Reading a policy's 100 000 overrides takes most of a second,
// and about 20 MB.
//
// While Redis is in trouble, the last overrides stay in force until they end. In
// Redis Cluster all overrides are in one slot. The user needs EVAL, EXISTS,
// HDEL, HEXISTS, HGET, HGETALL, HLEN, HSCAN and HSET.
type Redis struct {
	client Client
	prefix string
	log    *logwriter.Writer
	table  atomic.Pointer[table]

	reading chan struct{}  // holds one reader; guards bad and failing
	bad     map[string]int // unreadable overrides of the last reading, by policy
	failing bool

	stats struct {
		bad             atomic.Int64
		reads, failures atomic.Uint64
	}

	closing context.Context
	cancel  context.CancelFunc
	closed  chan struct{}
}

// RedisOptions tune a Redis. Zero values are defaults.
type RedisOptions struct {
	// Prefix begins the stored keys; empty means the limiter's. Set it if several services shall obey the same overrides, or
	// if the limiter has none. It has at most 64 bytes of printable ASCII without spaces and braces.
	Prefix string

	// Logger receives trouble with Redis and unreadable overrides. A goroutine
	// writes the lines. nil means slog.Default().
	Logger *slog.Logger
}

// A Client is a client of go-redis.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// NewRedis returns the overrides in Redis for the Middlewares of a limiter; nil options mean the defaults. Services whose
// limiters have different prefixes have different overrides: so a ban in one holds in no other. A program without a
// limiter passes nil, and sets Prefix. The table is empty until Redis has answered: [Redis.Refresh] waits. The error
// reports every misconfiguration.
func NewRedis(client Client, limiter algorithms.Limiter, o *RedisOptions) (*Redis, error) {
	if o == nil {
		o = &RedisOptions{}
	}
	r := &Redis{
		client: client, prefix: cmp.Or(o.Prefix, prefixOf(limiter)), log: logwriter.New(o.Logger),
		bad: make(map[string]int), closed: make(chan struct{}), reading: make(chan struct{}, 1),
	}
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("ratelimit: the Redis client is nil"))
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }
	if r.prefix == "" {
		errs = append(errs, errors.New("ratelimit: the overrides have no prefix: pass a limiter of package shared, or set RedisOptions.Prefix"))
	}
	if len(r.prefix) > maxPrefix || strings.ContainsFunc(r.prefix, odd) {
		errs = append(errs, fmt.Errorf("ratelimit: prefix %q: want at most %d bytes of printable ASCII without spaces and braces", r.prefix, maxPrefix))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r.table.Store(new(table))
	r.closing, r.cancel = context.WithCancel(context.Background())
	go r.poll()
	return r, nil
}

// prefixOf returns the prefix of a limiter in Redis, or of one that wraps it; "" for others.
func prefixOf(limiter algorithms.Limiter) string {
	if stored, ok := wrapped.Find[interface{ Prefix() string }](limiter); ok {
		return stored.Prefix()
	}
	return ""
}

func init() { lent.To[*Redis]() }

// Find implements ratelimit.Overrides, from memory.
func (r *Redis) Find(policy, key string) (ratelimit.Override, bool) {
	if o := r.table.Load().find(policy, key); o != nil {
		return *o, true
	}
	return ratelimit.Override{}, false
}

// Count returns how many overrides of a policy, as known here, have not ended, by mode.
func (r *Redis) Count(policy string) map[ratelimit.Mode]int {
	return r.table.Load().policies[policy].count()
}

// Findings returns a finding for each policy that has bans without an end that were set more than a day ago.
func (r *Redis) Findings() []algorithms.Finding { return r.table.Load().findings() }

// Close ends the goroutine and waits for it, and up to two seconds for the handler
// of the log. The last overrides stay in force. You may call it repeatedly. It does
// not close the client. The error is nil.
func (r *Redis) Close() error {
	r.cancel()
	<-r.closed
	r.log.Close()
	return nil
}

// Stats describe a [Redis].
type Stats struct {
	Overrides int    // in memory, some of them ended
	Bad       int    // in Redis and unreadable
	Reads     uint64 // of one policy's overrides, since NewRedis
	Failures  uint64 // of refreshes, since NewRedis
}

// Stats returns the present figures.
func (r *Redis) Stats() Stats {
	return Stats{
		Overrides: r.table.Load().size(), Bad: int(r.stats.bad.Load()),
		Reads: r.stats.reads.Load(), Failures: r.stats.failures.Load(),
	}
}
