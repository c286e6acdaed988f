package algorithms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Client sends one command: every client of go-redis does.
//
// A ClusterClient works, also behind a type of your own, and a Ring, but for
// that: wrapped, it would count one key on several shards. A Ring moves keys
// when a shard leaves or comes back, and what was counted on them starts anew.
// Close a Ring last, some seconds after the last call: its pipelines panic when
// it is closed meanwhile (go-redis 9.23).
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
// While calls are in flight, others gather, and the next script takes them all:
// a lone call waits for nothing, and many share round trips. A batch of 48
// takes from buckets holds Redis for about as long as 48 short commands do;
// other checks weigh more, and batches have fewer of them. Of a log whose costs
// are not all 1, up to half the entries are read when some expire, or when a cost
// is denied, and as many as a cost when it is settled: keep such logs small.
//
// A call ends when its context does, or Timeout after it was sent, whatever the
// client's timeouts are; what has been sent by then may have been charged. What
// waits for a connection when the Timeout passes is never sent, nor is what has
// waited behind other calls for as long. (A call that has to give back what it
// took in another slot takes up to a second longer.)
//
// A Redis is safe for concurrent use. It starts goroutines only while there are
// calls, each of which ends with the reply to what it has sent, or when the
// client gives up on it.
type Redis struct {
	client    Client
	prefix    string
	now       func() time.Time
	observe   func(Event)
	inFlight  int
	timeout   time.Duration
	lanes     []lane
	calls     sync.Pool               // of *call
	workers   sync.Pool               // of *worker
	placement atomic.Uint32           // a placement
	circuit   atomic.Pointer[circuit] // of the Fallback that it serves, if any
	alone     atomic.Int32            // commands under way outside of lanes
	stats     redisCounters
	doctor    doctor
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

	// Timeout bounds the wait to be sent, and then that for the answer, of every
	// call that has no earlier deadline of its own; 0 means 1 s.
	Timeout time.Duration

	// InFlight bounds the batches that are under way at once to one part of
	// Redis: to a standalone server, or to one of 64 ranges of slots of a
	// Cluster; 0 means 2.
	InFlight int

	// Observe, if not nil, is told what happens. It must be quick, and safe
	// for concurrent use.
	Observe func(Event)
}

const (
	defaultPrefix  = "penstock"
	defaultTimeout = time.Second
	maxPrefix      = 64

	// returnTimeout bounds giving back what a denied call took elsewhere: its
	// own context may have ended.
	returnTimeout = time.Second
)

// NewRedis returns a limiter that counts in Redis; nil options mean the
// defaults. It sends nothing: whether Redis answers is for the first call to
// see. It needs Redis 6.2 or later, of 64 bits, and is tested with 7.0.
func NewRedis(client Client, o *RedisOptions) (*Redis, error) {
	if o == nil {
		o = &RedisOptions{}
	}
	r := &Redis{client: client, prefix: o.Prefix, now: o.Now, inFlight: o.InFlight, observe: func(Event) {}}
	if r.prefix == "" {
		r.prefix = defaultPrefix
	}
	r.timeout = cmp.Or(o.Timeout, defaultTimeout)
	if r.inFlight == 0 {
		r.inFlight = defaultInFlight
	}
	if o.Observe != nil {
		r.observe = classified(o.Observe)
	}
	var errs []error
	if isNil(client) {
		errs = append(errs, errors.New("algorithms: the Redis client is nil"))
	} else if _, ok := client.(redis.Pipeliner); ok {
		errs = append(errs, fmt.Errorf("algorithms: %T is a pipeline, which only keeps commands; want the client itself", client))
	}
	if len(r.prefix) > maxPrefix || strings.ContainsFunc(r.prefix, odd) {
		errs = append(errs, fmt.Errorf("algorithms: prefix %q: want at most %d bytes of printable ASCII without spaces and braces", r.prefix, maxPrefix))
	}
	if r.inFlight < 0 {
		errs = append(errs, fmt.Errorf("algorithms: InFlight is %d; it must not be negative", r.inFlight))
	}
	if r.timeout < 0 {
		errs = append(errs, fmt.Errorf("algorithms: Timeout is %v; it must not be negative", r.timeout))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r.prefix += ":"
	r.placement.Store(uint32(placementOf(client)))
	r.lanes = make([]lane, clusterSlots/slotsPerLane)
	r.calls.New = func() any { return &call{r: r} }
	r.workers.New = newWorker
	for i := range r.lanes {
		r.lanes[i].r = r
	}
	return r, nil
}

// isNil reports whether there is no client, also not in a variable of its type.
func isNil(c Client) bool {
	v := reflect.ValueOf(c)
	return c == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func odd(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }

// Allow implements [Limiter]. An error is ErrInvalid's, the context's, the
// client's, or says that a key holds something that is not a limiter's;
// [Classify] tells them apart.
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
	if err != nil && c.split == together && redis.HasErrorPrefix(err, "CROSSSLOT") {
		// A Cluster behind a client of another type. It has executed nothing.
		r.placement.Store(uint32(bySlot))
		c.place()
		err = c.run(ctx)
	}
	if err != nil {
		return fmt.Errorf("algorithms: redis: %w", err)
	}
	for i := range c.items {
		it := &c.items[i]
		if it.answer.missing {
			r.stats.missing.Add(1)
		}
		checks[i].Decision = it.decision(it.now, Shared)
	}
	c.free()
	return nil
}

// scriptNow returns the clock that scripts are sent; empty for the server's.
func (r *Redis) scriptNow() (string, error) {
	if r.now == nil {
		return "", nil
	}
	now, err := clock(r.now())
	return strconv.FormatInt(now, 10), err
}

// processClock returns the clock of this process.
func (r *Redis) processClock() func() time.Time {
	if r.now == nil {
		return time.Now
	}
	return r.now
}

// RedisStats are counts since the start.
type RedisStats struct {
	Checks      uint64 // that were asked
	Scripts     uint64 // that were sent, each with the checks of many callers
	ScriptLoads uint64 // that had to be sent whole
	Errors      uint64 // scripts that failed, and times that calls had waited for too long
	// Missing are checks that found no stored state. New keys do, and keys
	// that were evicted or flushed: a jump means that Redis forgets limits.
	Missing uint64
	// Batches are the scripts by how many checks they held: Batches[i] are
	// those of at most 1<<i and more than half as many, and the last also those
	// of more. A script that had to be sent again is one of them.
	Batches [batchSizes]uint64
	// Batched are the checks in Batches.
	Batched uint64
}

const batchSizes = 9 // up to 128 checks, and more

type redisCounters struct {
	checks, scripts, loads, errors, missing, batched atomic.Uint64
	batches                                          [batchSizes]atomic.Uint64
}

// batch counts a script of so many checks.
func (c *redisCounters) batch(checks int) {
	c.batches[min(bits.Len(uint(checks-1)), batchSizes-1)].Add(1)
	c.batched.Add(uint64(checks))
}

// Stats returns what has happened so far.
func (r *Redis) Stats() RedisStats {
	stats := RedisStats{
		Checks:      r.stats.checks.Load(),
		Scripts:     r.stats.scripts.Load(),
		ScriptLoads: r.stats.loads.Load(),
		Errors:      r.stats.errors.Load(),
		Missing:     r.stats.missing.Load(),
		Batched:     r.stats.batched.Load(),
	}
	for i := range stats.Batches {
		stats.Batches[i] = r.stats.batches[i].Load()
	}
	return stats
}
