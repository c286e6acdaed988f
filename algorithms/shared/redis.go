// The Redis layer: every call is one script per Cluster slot, and so one atomic
// step and one round trip.
//
// The items of a call get stored keys, and are split by slot into groups
// (redis_slots.go). Each group belongs to the lane of a master (redis_lanes.go).
// Package batch sends the groups of a lane.

package shared

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// A redisLayer decides calls in Redis.
type redisLayer struct {
	transport *batch.Transport
	prefix    string // of every stored key
	circuits  *circuit.Circuits
	ledger    *ledger // keeps Returns that Redis could not execute
	report    *report

	cluster clusterClient // nil for other clients
	routed  atomic.Bool   // the client of the Cluster knows the masters
	lanes   sync.Map      // the address of the master, "" if it is unknown or the only one -> *batch.Lane

	checks, missing atomic.Uint64
	informed        atomic.Bool // Redis has said what it evicts, or refuses INFO
	foundAt         time.Time   // when a beat last looked for findings; only beats use it
	decided         atomic.Bool // Redis has decided the probes of ready
}

// newRedisLayer returns the layer for a client. Options have their defaults.
func newRedisLayer(client Client, o *Options, circuits *circuit.Circuits, ledger *ledger, report *report) *redisLayer {
	r := &redisLayer{prefix: o.Prefix + ":", circuits: circuits, ledger: ledger, report: report, foundAt: time.Now()}
	r.transport = batch.New(batch.Options{Client: client, InFlight: o.InFlight, Deadline: o.Deadline, Now: o.Now, Watcher: r})
	r.cluster, _ = client.(clusterClient)
	return r
}

// Failed implements [batch.Watcher]. After a failure, also one of a process that is late, it lets the client look for the
// masters of a Cluster again. Go-redis does so only now and then, or when a
// node redirects it. A node that is gone does not redirect.
func (r *redisLayer) Failed(err error) {
	if r.cluster != nil && trouble.Of(err).Effect == trouble.Failure {
		r.cluster.ReloadState(context.Background()) // does not wait
	}
	r.report.failed(err)
}

// Answered implements [batch.Watcher].
func (r *redisLayer) Answered() {
	r.report.answered()
	r.routed.Store(true)
}

// Late implements [batch.Watcher].
func (r *redisLayer) Late(took time.Duration) { r.report.late(took, r.transport.Deadline) }

// allow implements layer. The batches of the call keep the deadline, and report
// their round trips to the circuits.
func (r *redisLayer) allow(ctx context.Context, c *call) error {
	if r.cluster == nil && r.lane("").Circuit.Stops(c.ours) {
		return trouble.ErrOpen // at once: most calls of an outage end here
	}
	if err := r.decide(ctx, c); err != nil {
		return fmt.Errorf("shared: redis: %w", err)
	}
	return nil
}

func (r *redisLayer) decide(ctx context.Context, c *call) error {
	r.checks.Add(uint64(len(c.items)))
	r.split(c)
	if err := r.run(ctx, c); err != nil {
		c.failed = true
		return err
	}
	for i := range c.items {
		it := &c.items[i]
		if it.Dropped { // it has its decision
			continue
		}
		if it.Answer.Missing {
			r.missing.Add(1)
		}
		it.decide(it.Now, algorithms.Shared)
	}
	return nil
}

func (r *redisLayer) addStats(s *algorithms.Stats) {
	s.Redis.Checks = r.checks.Load()
	s.Redis.Missing = r.missing.Load()
	r.transport.AddStats(s)
}
