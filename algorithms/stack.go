package algorithms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// A Stack is the recommended limiter: a [Redis], and above it a memory of what it
// denied, so that those who ask again and again cost Redis nothing.
//
// A denial is remembered by this process until its RetryAfter has passed, for
// at most a second, and only for the same cost of the same limit on the same
// key: until then nothing but a settlement can end it. Settlements through this
// Stack end it at once; those of another instance, what a call in several slots
// of a Cluster gives back, a limit that was changed back, and keys that were
// flushed from Redis are seen a second late at the most. Waits count down from the remembered answer, so that they are never
// early; Remaining is that of
// the remembered answer, and so may be too low by what has come back since.
//
// If one check of a call is remembered as denied, the call is, and the others
// are not asked: their decisions are allowed and Undecided.
//
// With Options.Lease, keys that are asked for often take units from Redis in
// blocks, and cost it nothing in between; see [LeaseOptions].
//
// A Stack is safe for concurrent use, and must be closed if it leases.
type Stack struct {
	limiter Limiter // the top of the stack
	redis   *Redis
	lease   *lease     // nil if off
	denied  *denyCache // nil if off
}

var _ Limiter = (*Stack)(nil)

// Options tune a [Stack].
type Options struct {
	// Redis tunes the limiter at the bottom.
	Redis RedisOptions

	// DenyCacheKeys bounds the keys whose denials are remembered; 0 means
	// 100 000, and DenyCacheOff none. With a clock in Redis.Now none are
	// remembered, since they are by this process's time.
	DenyCacheKeys int

	// Lease, if not nil, leases hot keys. The zero LeaseOptions are the
	// defaults. With a clock in Redis.Now nothing is leased, for the same
	// reason.
	Lease *LeaseOptions
}

// DenyCacheOff is the DenyCacheKeys that asks Redis every time.
const DenyCacheOff = -1

const defaultDenyCacheKeys = 100_000

// NewShared returns the stack for a client; nil options mean the defaults. It
// starts a goroutine only if it leases, which Close ends.
func NewShared(client Client, o *Options) (*Stack, error) {
	if o == nil {
		o = &Options{}
	}
	r, err := NewRedis(client, &o.Redis)
	if o.DenyCacheKeys < DenyCacheOff {
		err = errors.Join(err, fmt.Errorf("algorithms: DenyCacheKeys is %d; it must not be negative, or DenyCacheOff", o.DenyCacheKeys))
	}
	var leases LeaseOptions
	if o.Lease != nil {
		leases = o.Lease.withDefaults()
		err = errors.Join(err, leases.validate())
	}
	if err != nil {
		return nil, err
	}
	s := &Stack{limiter: r, redis: r}
	if o.Redis.Now == nil {
		s.cover(o, leases)
	}
	return s, nil
}

// cover puts the layers that keep time by this process over the limiter.
func (s *Stack) cover(o *Options, leases LeaseOptions) {
	if o.Lease != nil {
		s.lease = newLease(s.limiter, leases, o.Redis.Observe)
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

// Close gives back what is on lease, and ends the goroutine of leases. That
// takes as long as Redis does to answer, and 3 s at most; the error says that
// it could not. Calls work on, without leases. Close may be called more than
// once, and while there are calls; without leases it does nothing.
func (s *Stack) Close() error {
	if s.lease == nil {
		return nil
	}
	return s.lease.close()
}

// Allow implements [Limiter]; see [Redis.Allow] for its errors.
func (s *Stack) Allow(ctx context.Context, checks []Check) error {
	return s.limiter.Allow(ctx, checks)
}

// StackStats are counts since the start, but for DeniedKeys and some of Lease.
type StackStats struct {
	Redis RedisStats
	// Lease is zero if nothing is leased.
	Lease LeaseStats
	// Denied are calls that were denied from memory, without Redis.
	Denied uint64
	// DeniedKeys are the keys whose denials are remembered, some of them past.
	DeniedKeys int
}

// Stats returns what has happened so far.
func (s *Stack) Stats() StackStats {
	stats := StackStats{Redis: s.redis.Stats()}
	if s.lease != nil {
		stats.Lease = s.lease.stats()
	}
	if s.denied != nil {
		stats.Denied = s.denied.hits.Load()
		stats.DeniedKeys = s.denied.len()
	}
	return stats
}
