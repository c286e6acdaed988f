package algorithms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// A Stack is the recommended limiter: a [Redis], a [Fallback] to a [Memory]
// for when that is in trouble, and above them a memory of what Redis denied, so
// that those who ask again and again cost it nothing.
//
// A denial is remembered by this process until its RetryAfter has passed, for
// at most a second, and only for the same cost of the same limit on the same
// key: until then nothing but a settlement can end it. Settlements through this
// Stack end it at once; those of another instance, what a call in several slots
// of a Cluster gives back, a limit that was changed back, and keys that were
// flushed from Redis are seen a second late at the most. Waits count down from
// the remembered answer, so that they are never early; Remaining is that of
// the remembered answer, and so may be too low by what has come back since.
//
// If one check of a call is remembered as denied, the call is, and the others
// are not asked: their decisions are allowed and Undecided.
//
// With Options.Lease, keys that are asked for often take units from Redis in
// blocks, and cost it nothing in between; see [LeaseOptions].
//
// A Stack is safe for concurrent use, and must be closed.
type Stack struct {
	limiter  Limiter // the top of the stack
	redis    *Redis
	memory   *Memory
	fallback *Fallback
	lease    *lease     // nil if off
	denied   *denyCache // nil if off
}

var _ Limiter = (*Stack)(nil)

// Options tune a [Stack].
type Options struct {
	// Redis tunes the limiter at the bottom. Its Timeout is that of
	// Fallback.Deadline, if it is not shorter.
	Redis RedisOptions

	// Fallback tunes what happens when Redis is in trouble.
	Fallback FallbackOptions

	// Memory tunes the limiter that decides meanwhile.
	Memory MemoryOptions

	// DenyCacheKeys bounds the keys whose denials are remembered; 0 means
	// 100 000, and DenyCacheOff none. With a clock in Redis.Now none are
	// remembered, since they are by this process's time.
	DenyCacheKeys int

	// Lease, if not nil, leases hot keys. The zero LeaseOptions are the
	// defaults. With a clock in Redis.Now nothing is leased, for the same
	// reason.
	Lease *LeaseOptions

	// Observe, if not nil, is told what happens in those parts that have no
	// Observe of their own. It must be quick, safe for concurrent use, and not
	// use the limiter.
	Observe func(Event)
}

// DenyCacheOff is the DenyCacheKeys that asks Redis every time.
const DenyCacheOff = -1

const defaultDenyCacheKeys = 100_000

// NewShared returns the stack for a client; nil options mean the defaults. It
// waits for nothing, and so succeeds also while Redis is down; [Stack.Ready]
// asks.
func NewShared(client Client, o *Options) (*Stack, error) {
	var options Options
	if o != nil {
		options = *o
	}
	for _, observe := range []*func(Event){&options.Redis.Observe, &options.Fallback.Observe, &options.Memory.Observe} {
		if *observe == nil {
			*observe = options.Observe
		}
	}
	s := new(Stack)
	var err error
	s.redis, err = NewRedis(client, &options.Redis)
	if err := errors.Join(err, options.validate()); err != nil {
		return nil, err
	}
	if s.memory, err = NewMemory(&options.Memory); err != nil {
		return nil, err
	}
	if s.fallback, err = NewFallback(s.redis, s.memory, &options.Fallback); err != nil {
		return nil, errors.Join(err, s.memory.Close())
	}
	s.limiter = s.fallback
	if options.Redis.Now == nil {
		s.cover(&options)
	}
	return s, nil
}

// validate returns every mistake at once, but for those of Redis.
func (o *Options) validate() error {
	errs := []error{o.Fallback.validate(), o.Memory.validate()}
	if o.DenyCacheKeys < DenyCacheOff {
		errs = append(errs, fmt.Errorf("algorithms: DenyCacheKeys is %d; it must not be negative, or DenyCacheOff", o.DenyCacheKeys))
	}
	if o.Lease != nil {
		leases := o.Lease.withDefaults()
		errs = append(errs, leases.validate())
	}
	return errors.Join(errs...)
}

// cover puts the layers that keep time by this process over the limiter.
func (s *Stack) cover(o *Options) {
	if o.Lease != nil {
		s.lease = newLease(s.limiter, o.Lease.withDefaults(), o.Observe)
		s.limiter = s.lease
	}
	if o.DenyCacheKeys != DenyCacheOff {
		s.denied = newDenyCache(s.limiter, cmp.Or(o.DenyCacheKeys, defaultDenyCacheKeys))
		s.limiter = s.denied
	}
	if s.lease == nil {
		return
	}
	if s.denied != nil {
		s.lease.eased = s.denied.forget
	}
	go s.lease.watch()
}

// Ready returns nil if Redis can decide, else why not: a mistake in its
// configuration (its [Classify] is ErrorConfiguration) should end the program
// at start, while other trouble may pass.
func (s *Stack) Ready(ctx context.Context) error { return s.fallback.Ready(ctx) }

// Close gives back what is on lease, and ends the goroutines of the stack. That
// takes as long as Redis does to answer, and 3 s at most; the error says that
// it could not. Calls work on, without leases, and without recovery from
// trouble. Close may be called more than once, and while there are calls. The
// client stays the caller's.
func (s *Stack) Close() error {
	var err error
	if s.lease != nil {
		err = s.lease.close()
	}
	return errors.Join(err, s.fallback.Close(), s.memory.Close())
}

// Allow implements [Limiter]; see [Fallback.Allow] for its errors.
func (s *Stack) Allow(ctx context.Context, checks []Check) error {
	return s.limiter.Allow(ctx, checks)
}

// StackStats are counts since the start, but for DeniedKeys and some of others.
type StackStats struct {
	Redis    RedisStats
	Fallback FallbackStats
	Memory   MemoryStats
	// Lease is zero if nothing is leased.
	Lease LeaseStats
	// Denied are calls that were denied from memory, without Redis.
	Denied uint64
	// DeniedKeys are the keys whose denials are remembered, some of them past.
	DeniedKeys int
}

// Stats returns what has happened so far.
func (s *Stack) Stats() StackStats {
	stats := StackStats{Redis: s.redis.Stats(), Fallback: s.fallback.Stats(), Memory: s.memory.Stats()}
	if s.lease != nil {
		stats.Lease = s.lease.stats()
	}
	if s.denied != nil {
		stats.Denied = s.denied.hits.Load()
		stats.DeniedKeys = s.denied.len()
	}
	return stats
}
