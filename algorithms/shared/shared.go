// The limiter that all instances share: its layers and its life.

package shared

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// A Client is a client of go-redis. Checks in several Cluster slots need a
// [redis.ClusterClient], or a type that embeds one.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A Limiter is safe for concurrent use. Processes with the same Redis and
// prefix count together. Close it.
type Limiter struct {
	top      layer
	redis    *redisLayer
	memory   *algorithms.Memory
	fallback *fallback
	lease    *lease     // nil if off
	denied   *denyCache // nil if off
	report   *report
}

var _ algorithms.Limiter = (*Limiter)(nil)

// New returns a limiter for a client of Redis 6.2 or later, of 64 bits. Nil
// options mean the defaults. The error names every misconfiguration. New sends
// nothing; see [Limiter.Ready].
func New(rdb Client, o *Options) (*Limiter, error) {
	options := o.withDefaults()
	if err := errors.Join(validateClient(rdb), options.validate()); err != nil {
		return nil, err
	}
	l := &Limiter{
		report: newReport(options.Logger),
		memory: algorithms.NewMemory(&algorithms.MemoryOptions{MaxKeys: options.MaxKeys, Now: options.Now}),
	}
	circuit := newCircuit(options.Deadline)
	l.redis = newRedisLayer(rdb, &options, circuit, l.report)
	l.fallback = newFallback(l.redis, l.memory, circuit, &options, l.report)
	l.top = l.fallback
	if options.Now == nil {
		l.cover(&options)
	}
	return l, nil
}

// cover puts the layers that keep time by this process over the fallback. The
// order matters: a deny cache below the fallback would hide an outage from its
// circuit.
func (l *Limiter) cover(o *Options) {
	if o.Lease != nil {
		l.lease = newLease(l.top, o.Lease, l.report)
		l.top = l.lease
	}
	if o.DenyCacheKeys != DenyCacheOff {
		l.denied = newDenyCache(l.top, o.DenyCacheKeys)
		l.top = l.denied
	}
	if l.lease != nil {
		if l.denied != nil {
			l.lease.eased = l.denied.forget
		}
		go l.lease.watch()
	}
}

// Allow implements [algorithms.Limiter]. Errors wrap [algorithms.ErrInvalid] or
// [algorithms.ErrUnavailable], or are the context's.
func (l *Limiter) Allow(ctx context.Context, checks []algorithms.Check) error {
	if err := ctx.Err(); err != nil || len(checks) == 0 {
		return err
	}
	c, err := newCall(checks)
	if err != nil {
		return err
	}
	defer c.free()
	if err := l.top.allow(ctx, c); err != nil {
		return err
	}
	for i := range checks {
		checks[i].Decision = c.items[i].decision
	}
	return nil
}

// Ready returns nil if Redis can decide now, and otherwise the reason. Call it
// when a program starts, and in its health check. It also finds a server that
// is read-only or full, or withholds a permission. While the circuit is open,
// Ready does not ask Redis. Before its first success it may take 5 s.
func (l *Limiter) Ready(ctx context.Context) error { return l.fallback.ready(ctx) }

// Findings returns wrong settings of Redis and its client with which limits
// still work. Each is logged once. Findings asks one Redis node for INFO.
func (l *Limiter) Findings(ctx context.Context) []algorithms.Finding { return l.redis.findings(ctx) }

// Dismiss marks a finding of this instance as dismissed, until its cause ends.
// It reports whether there is one.
func (l *Limiter) Dismiss(code string) bool { return l.redis.dismiss(code) }

// StoredKey returns the key of a check in Redis, e.g.
// penstock:{usr=42}:orders:tb. It is empty for an invalid check and for Nobody.
func (l *Limiter) StoredKey(check algorithms.Check) string { return l.redis.storedKey(check) }

// Stats returns the counts so far.
func (l *Limiter) Stats() algorithms.Stats {
	s := l.memory.Stats()
	s.Shared = true
	l.redis.addStats(&s)
	l.fallback.addStats(&s)
	l.report.addStats(&s)
	if l.lease != nil {
		l.lease.addStats(&s)
	}
	if l.denied != nil {
		l.denied.addStats(&s)
	}
	return s
}

// Close gives back leases, and ends goroutines, within 3 s. The error says that
// units could not go back. Later calls work, without leases and recovery. You
// may call it repeatedly. Close the client last.
func (l *Limiter) Close() error {
	var err error
	if l.lease != nil {
		err = l.lease.close()
	}
	l.fallback.close()
	return err
}
