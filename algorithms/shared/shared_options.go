// How a shared limiter is tuned: one Options for all of its parts.

package shared

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options tune a [Limiter]. The zero value is the default of every option.
type Options struct {
	// Prefix begins every stored key; empty means "penstock". It must be of
	// printable ASCII without spaces and braces, at most 64 bytes.
	Prefix string

	// Deadline bounds the wait to be sent, and then the wait for the answer, of
	// every call, unless the call's context ends earlier; 0 means 50 ms. A call
	// that Redis has not answered by then is decided without it.
	Deadline time.Duration

	// Logger receives one line per change of state: Redis fails, is unavailable,
	// is available, is misconfigured or cannot run the script, units could not be
	// given back. Nil means slog.Default(). It logs no keys.
	Logger *slog.Logger

	// Now is the clock of decisions. It must be safe for concurrent use. Nil
	// means the clock of the Redis server, which is the same for all instances.
	// Instances whose clocks differ by more than 100 ms see each other's states
	// as being from the future, and repair them. With a clock, no denial is remembered and nothing is leased,
	// because both keep time by this process.
	Now func() time.Time

	// InFlight bounds the batches that are under way at once to one part of
	// Redis: to a standalone server, or to one of 64 ranges of slots of a
	// Cluster. Their number follows the network up to this bound. It stays 2 for a
	// client that writes its commands as text, because that hides the round trip.
	// 0 means half of the client's pool, or 4 if the client does not show its pool.
	InFlight int

	// Instances is how many instances share Redis until Redis can tell; 0 means
	// 1. They announce themselves there and are counted every 5 s. A lower
	// count is believed after 15 s.
	Instances int

	// Share, in per cent, is the part of every limit that this process admits
	// alone while Redis does not decide; 0 means one part in as many as there
	// are instances.
	Share int

	// MaxKeys bounds the keys that this process counts by itself while Redis
	// does not decide: see [algorithms.MemoryOptions].
	MaxKeys int

	// DenyCacheKeys bounds the keys whose denials are remembered, each for up to
	// four costs; 0 means 100 000, and DenyCacheOff none.
	DenyCacheKeys int

	// Lease, if not nil, leases hot keys. The zero LeaseOptions are the
	// defaults.
	Lease *LeaseOptions
}

// DenyCacheOff is the DenyCacheKeys that asks Redis every time.
const DenyCacheOff = -1

const (
	defaultPrefix        = "penstock"
	maxPrefix            = 64
	defaultDeadline      = 50 * time.Millisecond
	maxInstances         = 100_000
	defaultDenyCacheKeys = 100_000
)

// withDefaults returns a copy of o, in which nothing is left to a default.
func (o *Options) withDefaults() Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Prefix = cmp.Or(all.Prefix, defaultPrefix)
	all.Deadline = cmp.Or(all.Deadline, defaultDeadline)
	all.Instances = cmp.Or(all.Instances, 1)
	all.DenyCacheKeys = cmp.Or(all.DenyCacheKeys, defaultDenyCacheKeys)
	if all.Logger == nil {
		all.Logger = slog.Default()
	}
	if all.Lease != nil {
		lease := all.Lease.withDefaults()
		all.Lease = &lease
	}
	return all
}

// validate returns every mistake at once, of options that have their defaults.
func (o *Options) validate() error {
	var errs []error
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("shared: "+format, args...))
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }
	if len(o.Prefix) > maxPrefix || strings.ContainsFunc(o.Prefix, odd) {
		mistake("Prefix is %q; want at most %d bytes of printable ASCII without spaces and braces", o.Prefix, maxPrefix)
	}
	if o.Deadline < 0 {
		mistake("Deadline is %v; it must not be negative", o.Deadline)
	}
	if o.InFlight < 0 {
		mistake("InFlight is %d; it must not be negative", o.InFlight)
	}
	if o.Instances < 0 || o.Instances > maxInstances {
		mistake("Instances is %d; want at most %d, or 0 for 1", o.Instances, maxInstances)
	}
	if o.Share < 0 || o.Share > 100 {
		mistake("Share is %d; want per cent from 1 to 100, or 0 for one part in as many as there are instances", o.Share)
	}
	if o.MaxKeys < 0 {
		mistake("MaxKeys is %d; it must not be negative", o.MaxKeys)
	}
	if o.DenyCacheKeys < DenyCacheOff {
		mistake("DenyCacheKeys is %d; it must not be negative, except DenyCacheOff", o.DenyCacheKeys)
	}
	if o.Lease != nil {
		errs = append(errs, o.Lease.validate())
	}
	return errors.Join(errs...)
}

// validateClient returns why a client cannot serve a limiter, or nil.
func validateClient(c Client) error {
	if v := reflect.ValueOf(c); c == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("shared: the Redis client is nil")
	}
	switch c.(type) {
	case redis.Pipeliner:
		return fmt.Errorf("shared: %T is a pipeline, which only keeps commands; pass the client itself", c)
	case interface{ Options() *redis.RingOptions }: // also embedded in another type
		return errors.New("shared: a Ring forgets limits when it moves keys between shards; use Redis Cluster, Sentinel or one server")
	}
	return nil
}
