// The Redis layer: every call is one script per Cluster slot, and so one atomic
// step and one round trip.
//
// A call goes down through these files:
//
//	redis_slots.go   its items get stored keys, and are split by slot into groups
//	redis_lanes.go   each group belongs to the lane of a master
//	batch_queue.go   the group queues, and a sender sends the gathered groups
//	batch.go         the life of a batch, from the queue to its end
//	batch_size.go    how many groups one batch takes from the queue
//	batch_trip.go    the round trips of a batch
//	batch_args.go    the groups of one slot become the arguments of one script
//	batch_script.go  the command that runs the script
//	batch_reply.go   the reply of the script becomes the items' answers
//
// A charge is made once or its call ends in an error: a script that Redis may
// have executed is never sent again, whatever retries the client is configured
// for.

package shared

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// A redisLayer decides calls in Redis. It has goroutines only while there are
// calls. Each ends with the reply to its commands, or when the client gives up.
type redisLayer struct {
	client   Client
	workers  *sender          // of batches that workers send
	direct   *sender          // of batches that callers send; nil: callers send none
	prefix   string           // of every stored key
	now      func() time.Time // of decisions; nil: the clock of the server
	clock    func() time.Time // of this process: now, if that is set
	inFlight int              // the most batches of a lane
	deadline time.Duration
	circuits *circuits
	returns  *returns // that Redis could not execute
	report   *report

	only    *lane         // nil for the client of a Cluster
	cluster clusterClient // nil for other clients
	routed  atomic.Bool   // the client of the Cluster knows the masters
	lanes   sync.Map      // the address of the master -> *lane

	batches  sync.Pool // of *batch
	counts   redisCounts
	trips    roundTrips
	eviction eviction
	decided  atomic.Bool // Redis has decided the probes of ready
}

const (
	// clientDeadlines is after how many deadlines the workers' client gives up
	// a read or a write, where the limiter may choose. Until then the reply to a
	// call that timed out may still say whether Redis has executed it.
	clientDeadlines = 10

	// clientSlack is how long after the limiter the callers' own client gives
	// up, so that the batch expires first.
	clientSlack = time.Millisecond

	// controlDeadline is the deadline of plain commands. No caller of a limit
	// waits for them, and the first command may have to dial.
	controlDeadline = time.Second
)

// newRedisLayer returns the layer for a client. Options have their defaults.
func newRedisLayer(client Client, o *Options, circuits *circuits, kept *returns, report *report) *redisLayer {
	r := &redisLayer{
		client: client, prefix: o.Prefix + ":", now: o.Now, inFlight: o.InFlight, deadline: o.Deadline,
		circuits: circuits, returns: kept, report: report,
	}
	if r.clock = r.now; r.clock == nil {
		r.clock = time.Now
	}
	if r.inFlight == 0 {
		r.inFlight = blindInFlight
		if pool := poolOf(client); pool > 0 {
			r.inFlight = max(1, pool*4/5)
		}
	}
	r.workers = newSender(client, clientDeadlines*o.Deadline)
	if c, ok := client.(*redis.Client); ok {
		if endsInTime(c.Options()) {
			r.direct = newSender(c, o.Deadline+clientSlack)
		}
		c.AddHook(divert{})
	}
	if r.cluster, _ = client.(clusterClient); r.cluster == nil {
		r.only = r.newLane()
		r.lanes.Store("", r.only)
	}
	r.batches.New, r.eviction.at = newBatch, time.Now()
	return r
}

// endsInTime reports whether no operation of a client outlasts its timeouts and
// contexts. Code of the program may.
func endsInTime(o *redis.Options) bool {
	return o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil && o.OnConnect == nil
}

// poolOf returns the size of a client's pool; 0 if the client does not show it.
func poolOf(client Client) int {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		return c.Options().PoolSize
	case clusterClient:
		return c.Options().PoolSize
	}
	return 0
}

// allow implements layer. The batches of the call keep the deadline, and report
// their round trips to the circuits.
func (r *redisLayer) allow(ctx context.Context, c *call) error {
	if l := r.only; l != nil && l.circuit.stops(c.ours) {
		return trouble.ErrOpen // at once: most calls of an outage end here
	}
	if err := r.decide(ctx, c); err != nil {
		return fmt.Errorf("shared: redis: %w", err)
	}
	return nil
}

func (r *redisLayer) decide(ctx context.Context, c *call) error {
	r.counts.checks.Add(uint64(len(c.items)))
	rc := &c.slots
	if rc.redis != r {
		rc.groups = nil // in tests, channels must not leave the synctest bubble of another limiter
	}
	rc.redis, rc.call, rc.items = r, c, c.items
	rc.split()
	if err := rc.run(ctx); err != nil {
		c.givenUp = true // a batch may still use the items
		return err
	}
	for i := range c.items {
		it := &c.items[i]
		if it.Answer.Missing {
			r.counts.missing.Add(1)
		}
		it.decide(it.now, algorithms.Shared)
	}
	return nil
}

// do sends plain commands, all for one slot, and returns the first of their
// errors. They must do no harm if the client sends them late, or more than once.
// If do returns an error, the client may still write their replies. A silent Redis
// opens the circuit, and then the limiter sends no plain commands. So few abandoned
// commands gather.
func (r *redisLayer) do(ctx context.Context, commands ...redis.Cmder) error {
	ctx, cancel := context.WithTimeout(ctx, max(r.deadline, controlDeadline))
	defer cancel() // not before the end is read: both would be ready
	done := make(chan error, 1)
	go func() {
		r.workers.trip(ctx, commands)
		var first error
		for _, cmd := range commands {
			first = cmp.Or(first, trouble.AsTimeout(cmd.Err()))
		}
		done <- first
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return trouble.ErrTimeout
	}
}

// latest is the last instant at which all arithmetic is exact, in 2252.
const latest = step.MaxExact - 1<<46

// scriptNow returns the instant that scripts receive, in µs, by the clock of Options.
func (r *redisLayer) scriptNow() (int64, error) {
	now := r.now().UnixMicro()
	if now < 1 || now > latest {
		return 0, fmt.Errorf("%w: the clock says %v; it must be after 1970 and before 2253",
			algorithms.ErrInvalid, time.UnixMicro(now).UTC())
	}
	return now, nil
}

type redisCounts struct {
	checks, scripts, missing, batched atomic.Uint64
	batches                           [len(algorithms.Stats{}.Redis.Batches)]atomic.Uint64
}

func (r *redisLayer) addStats(s *algorithms.Stats) {
	s.Redis.Checks = r.counts.checks.Load()
	s.Redis.Scripts = r.counts.scripts.Load()
	s.Redis.Missing = r.counts.missing.Load()
	s.Redis.Batched = r.counts.batched.Load()
	for i := range s.Redis.Batches {
		s.Redis.Batches[i] = r.counts.batches[i].Load()
	}
	s.Redis.Deadline = r.deadline
	r.trips.addStats(s)
}
