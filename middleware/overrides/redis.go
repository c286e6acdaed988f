// Overrides of all instances, in Redis.

package overrides

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/lent"
	"github.com/penstock-go/penstock/internal/logwriter"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

const (
	maxPrefix = 64 // bytes

	// Other instances see an edit within a second: half of it passes until the
	// next poll, and half is for reading.
	pollEvery = 500 * time.Millisecond

	// sweepEvery is the time between two removals of ended overrides.
	sweepEvery = time.Minute
)

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
	known
	client Client
	prefix string
	log    *logwriter.Writer

	reading chan struct{}  // holds one reader; guards bad and failing
	bad     map[string]int // unreadable overrides of the last reading, by policy
	failing bool

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
		client: client, prefix: o.Prefix, log: logwriter.New(o.Logger),
		bad: make(map[string]int), closed: make(chan struct{}), reading: make(chan struct{}, 1),
	}
	if stored, ok := wrapped.Find[interface{ Prefix() string }](limiter); ok && r.prefix == "" {
		r.prefix = stored.Prefix()
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

func init() { lent.To[*Redis]() }

// Close ends the goroutine and waits for it, and up to two seconds for the handler
// of the log. The last overrides stay in force. You may call it repeatedly. It does
// not close the client. The error is nil.
func (r *Redis) Close() error {
	r.cancel()
	<-r.closed
	r.log.Close()
	return nil
}

// Refresh reads the changes from Redis. Call it at startup if the service must
// know its overrides before it serves. Errors are the client's or the
// context's.
func (r *Redis) Refresh(ctx context.Context) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	defer func() { <-r.reading }()
	err := r.read(ctx)
	if ctx.Err() != nil {
		return err
	}
	switch failing := err != nil; {
	case failing && !r.failing:
		r.log.Add(slog.LevelWarn, "overrides not refreshed", "error", err)
	case !failing && r.failing:
		r.log.Add(slog.LevelInfo, "overrides refreshed again")
	}
	r.failing = err != nil
	return err
}

// wait waits for the place in reading, or until ctx ends: the reader before may wait for a Redis that hangs.
func (r *Redis) wait(ctx context.Context) error {
	select {
	case r.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ratelimit: %w", ctx.Err())
	}
}

// poll is the one goroutine of r.
func (r *Redis) poll() {
	defer close(r.closed)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for swept := time.Now(); ; {
		_ = r.Refresh(r.closing) // it has logged its error
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
