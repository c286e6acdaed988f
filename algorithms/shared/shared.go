// The limiter that all instances share: its layers and its life.

package shared

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// A Client sends one command: every client of go-redis does. Where a client also
// has Pipeline(), work for several slots of a Cluster uses it.
//
// A ClusterClient is recognised by its type, and a client of another type that
// stands before a Cluster is not: embed the ClusterClient instead of wrapping
// it, or keep all checks of a call on one principal.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A Limiter limits together with every process that uses the same Redis and
// prefix. A call is one script, and so one atomic step and one round trip, for
// any number of limits; concurrent calls share round trips.
//
// While Redis is in trouble, the Limiter decides alone; see the package
// comment. Denials that Redis has made are remembered, so clients that retry
// cost it nothing. With Options.Lease, hot keys take units in blocks.
//
// A Limiter is safe for concurrent use, and must be closed.
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

// New returns a limiter for a client of Redis; nil options mean the defaults. It
// needs Redis 6.2 or later, of 64 bits. The error names every misconfiguration
// at once.
//
// New sends nothing, so it succeeds also while Redis is down; [Limiter.Ready]
// asks Redis.
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
// order is the only right one: a deny cache below the fallback would hide an
// outage from its circuit.
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

// Ready returns nil if Redis can decide now, and why not otherwise. It is meant
// for the start of a program and for its health check. It finds faults that a
// ping does not: a server that only reads, is full, or withholds a permission.
//
// A [Misconfiguration] says what to do, and will not pass by itself: it should end
// the program at start. Other errors may pass. While the circuit is open, Ready
// does not ask Redis.
//
// Ready runs a few scripts, on keys of its own that expire soon; in Redis Cluster
// in slots far apart, so that a missing master shows. Until Redis has decided once,
// it also does the following:
//   - It runs each command of the script. So the client's user must have the
//     permissions for all algorithms.
//   - If the client receives no answer, Ready connects to the client's address, and
//     finds out within 0.3 s whether the server speaks TLS.
//   - It leaves it to the caller to log a misconfiguration.
func (l *Limiter) Ready(ctx context.Context) error { return l.fallback.ready(ctx) }

// Findings returns what is wrong with Redis and its client but does not keep
// limits from working today: eviction that drops limits, an untested version, and
// settings of the client that fight the limiter's. Each is logged once.
//
// Findings asks Redis for INFO; of a Cluster it asks one node. While that cannot
// be had, the previous answer counts. A user without permission for INFO is not
// an error.
func (l *Limiter) Findings(ctx context.Context) []algorithms.Finding { return l.redis.findings(ctx) }

// Dismiss marks a finding of this instance as dismissed, until its cause ends. It
// reports whether Findings has found one with the code.
func (l *Limiter) Dismiss(code string) bool { return l.redis.dismiss(code) }

// StoredKey returns the key under which Redis holds the state of a check, such
// as penstock:{usr=42}:orders:tb, for operators who look there. It is empty for
// a check that is invalid, and for the limit Nobody, which has no state.
func (l *Limiter) StoredKey(check algorithms.Check) string { return l.redis.storedKey(check) }

// Stats returns what has happened so far.
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

// Close gives back what is on lease, and ends the goroutines of the limiter. It
// takes as long as Redis does to answer, and 3 s at most. The error says that
// Redis could not be asked; units that could not be given back are counted in
// Stats and logged. Later calls work, without leases and without recovery from
// trouble. Close may be called more than once, and while there are calls. The
// client stays the caller's.
func (l *Limiter) Close() error {
	var err error
	if l.lease != nil {
		err = l.lease.close()
	}
	l.fallback.close()
	return err
}
