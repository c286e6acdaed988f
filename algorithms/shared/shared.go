// The limiter that all instances share: its layers and its life.

package shared

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/internal/lent"
)

// A Client is a client of go-redis. Checks in several Cluster slots need a
// [redis.ClusterClient], or a type that embeds one.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A Limiter is safe for concurrent use. Close it.
type Limiter struct {
	top      layer
	redis    *redisLayer
	memory   *algorithms.Memory
	fallback *fallback
	views    *views
	report   *report
}

var _ algorithms.Limiter = (*Limiter)(nil)

// New returns a limiter for a client of Redis 6.2 or later, of 64 bits. Nil
// options mean the defaults. The error names every misconfiguration. New sends
// nothing; see [Limiter.Ready].
func New(rdb Client, o *Options) (*Limiter, error) {
	options := o.withDefaults()
	if err := options.validate(rdb); err != nil {
		return nil, err
	}
	_, many := rdb.(clusterClient)
	l := &Limiter{
		report: newReport(options.Logger, many),
		memory: algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: options.MaxKeys, Now: options.Now}),
	}
	l.report.guesses = options.Instances == 1
	circuits, ledger := circuit.New(options.Deadline), newLedger(l.report)
	if options.Now != nil { // views keep time by this process
		options.Views = ViewsOff
	}
	l.views = newViews(max(0, options.Views), options.Ahead, circuits.AnyOpen)
	l.redis = newRedisLayer(rdb, &options, circuits, ledger, l.report)
	l.fallback = newFallback(l.redis, l.memory, circuits, l.views, ledger, &options, l.report)
	l.views.next, l.top = l.fallback, l.views // over the fallback: below it, views would hide an outage from the circuits
	return l, nil
}

func init() { lent.To[*Limiter]() }

// Allow implements [algorithms.Limiter]. Errors wrap [algorithms.ErrInvalid] or
// [algorithms.ErrUnavailable], or are the context's. A call that is on its way to Redis waits for its answer
// also after its context has ended, at most for Options.Deadline.
func (l *Limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	c, err := newCall(checks)
	if err != nil {
		return err
	}
	if err = l.top.allow(ctx, c); err == nil {
		for i := range checks {
			checks[i].Decision = c.items[i].decision
		}
	}
	c.free() // not after a panic of the client, because then a group may have an end that no caller has read
	return err
}

// Ready returns nil if Redis can decide now, and otherwise the reason. Call it when a program starts, in a smoke
// test, or on a page for operators. Do not call it in a probe or a load balancer's health check: an outage of Redis
// would take all instances out of service, although they limit without it.
//
// Ready also finds a server that is read-only, full or too far away, or that withholds a permission. While the
// circuit is open, Ready does not ask Redis. Before its first success it may take 5 s.
func (l *Limiter) Ready(ctx context.Context) error { return l.report.explained(l.fallback.ready(ctx)) }

// Findings returns wrong settings of Redis, its client and Options.Ahead with which limits still work. It asks one
// Redis node for INFO. If that fails, it returns what it found last.
func (l *Limiter) Findings(ctx context.Context) []algorithms.Finding { return l.redis.findings(ctx) }

// StoredKey returns the key of a check in Redis, e.g.
// penstock:{usr=42}:orders:tb. It is empty for an invalid check and for Nobody.
func (l *Limiter) StoredKey(check algorithms.Check) string { return l.redis.storedKey(check) }

// Prefix returns the prefix of the keys in Redis.
func (l *Limiter) Prefix() string { return strings.TrimSuffix(l.redis.prefix, ":") }

// Stats returns the counts so far.
func (l *Limiter) Stats() algorithms.Stats {
	s := l.memory.Stats()
	s.Shared = true
	l.redis.addStats(&s)
	l.fallback.addStats(&s)
	l.report.addStats(&s)
	l.views.addStats(&s)
	return s
}

// Close waits for charges of requests that were admitted ahead, and ends the goroutines of the limiter, within 3 s.
// Later calls work, but the limiter does not recover from an outage any more. You may call Close repeatedly. Close
// the client last. The error is always nil.
func (l *Limiter) Close() error {
	l.views.close()
	l.fallback.close()
	return nil
}
