// The Redis layer: every call is one script per Cluster slot, and so one atomic
// step and one round trip.
//
// A call goes down through these files:
//
//	redis_call.go    its items get stored keys, and are split by slot into groups
//	batch_lane.go    each group queues in the lane of its slot, and a worker sends
//	                 the gathered groups as one batch
//	batch.go         the life of a batch, from the queue to the answer
//	batch_send.go    the round trips of a batch
//	batch_script.go  the groups of one slot become one script
//	batch_reply.go   the reply of the script becomes the items' answers
//
// A charge is made once or its call ends in an error: a script that Redis may
// have executed is never sent again, whatever retries the client is configured
// for.

package shared

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A redisLayer decides calls in Redis. It has goroutines only while there are
// calls. Each ends with the reply to its commands, or when the client gives up.
type redisLayer struct {
	client    Client
	pipelines pipeliner        // the client, if it has pipelines
	reloads   reloader         // the client, if it knows the nodes of a Cluster
	cluster   bool             // one script may use keys of one slot only
	prefix    string           // of every stored key
	now       func() time.Time // of decisions; nil: the clock of the server
	clock     func() time.Time // of this process: now, if that is set
	inFlight  int              // the most batches of a lane
	extra     atomic.Int64     // batches in flight beyond two of their lane, of all lanes
	deadline  time.Duration
	obeys     bool     // the client obeys the deadlines of contexts
	circuit   *circuit // nil: none
	report    *report

	lanes   []lane
	control lane      // for plain commands
	calls   sync.Pool // of *redisCall
	batches sync.Pool // of *batch
	counts  redisCounts
	doctor  doctor
}

// A pipeliner is a client that can send several commands at once.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// A reloader is a client that knows the nodes of each slot. Go-redis reloads
// them only every minute, or when a node redirects it. A node that is gone does
// not redirect.
type reloader interface{ ReloadState(context.Context) }

// A clusterClient is a [redis.ClusterClient], also embedded in another type.
type clusterClient interface{ Options() *redis.ClusterOptions }

// newRedisLayer returns the layer for a client. Options have their defaults. The
// circuit may be nil.
func newRedisLayer(client Client, o *Options, circuit *circuit, report *report) *redisLayer {
	r := &redisLayer{
		client: client, prefix: o.Prefix + ":", now: o.Now, inFlight: o.InFlight, deadline: o.Deadline,
		circuit: circuit, report: report,
	}
	if r.clock = r.now; r.clock == nil {
		r.clock = time.Now
	}
	if _, _, pool, _ := r.settings(); r.inFlight == 0 {
		r.inFlight = blindInFlight
		if pool > 0 {
			r.inFlight = max(1, pool/2)
		}
	}
	r.obeys = obeysDeadlines(client)
	r.pipelines, _ = client.(pipeliner)
	r.reloads, _ = client.(reloader)
	_, r.cluster = client.(clusterClient)
	r.lanes = make([]lane, 1)
	if r.cluster {
		r.lanes = make([]lane, clusterSlots/slotsPerLane)
	}
	for i := range r.lanes {
		r.lanes[i].redis, r.lanes[i].deadline = r, o.Deadline
	}
	r.control.redis, r.control.plain = r, true
	r.control.deadline = max(o.Deadline, controlDeadline)
	r.calls.New = func() any { return &redisCall{redis: r} }
	r.batches.New = newBatch
	return r
}

// allow implements layer. The batches of the call keep the deadline, and report
// their round trips to the circuit.
func (r *redisLayer) allow(ctx context.Context, c *call) error {
	if err := r.decide(ctx, c); err != nil {
		return fmt.Errorf("shared: redis: %w", err)
	}
	return nil
}

func (r *redisLayer) decide(ctx context.Context, c *call) error {
	r.counts.checks.Add(uint64(len(c.items)))
	rc := r.newCall(c)
	if err := rc.run(ctx); err != nil {
		c.givenUp = true // a batch may still read the items
		for i := range rc.groups {
			c.underWay = c.underWay || rc.groups[i].left
		}
		return err
	}
	for i := range c.items {
		it := &c.items[i]
		if it.Answer.Missing {
			r.counts.missing.Add(1)
		}
		it.decide(it.now, algorithms.Shared)
	}
	rc.free()
	return nil
}

// latest is the last instant at which all arithmetic is exact, in 2252.
const latest = step.MaxExact - 1<<46

// scriptNow returns the instant that scripts receive, in µs; 0 for the server's
// clock.
func (r *redisLayer) scriptNow() (int64, error) {
	if r.now == nil {
		return 0, nil
	}
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

// batch counts a script of so many checks.
func (c *redisCounts) batch(checks int) {
	c.batches[min(bits.Len(uint(checks-1)), len(c.batches)-1)].Add(1)
	c.batched.Add(uint64(checks))
}

func (r *redisLayer) addStats(s *algorithms.Stats) {
	s.Redis.Checks = r.counts.checks.Load()
	s.Redis.Scripts = r.counts.scripts.Load()
	s.Redis.Missing = r.counts.missing.Load()
	s.Redis.Batched = r.counts.batched.Load()
	for i := range s.Redis.Batches {
		s.Redis.Batches[i] = r.counts.batches[i].Load()
	}
}
