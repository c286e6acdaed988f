package algorithms

import (
	"context"
	"fmt"
	"time"
)

// Ready returns nil if Redis can decide now, else why not. It is meant for the
// start of a program and for its health check: it finds what a ping does not, a
// server that only reads, is full, or withholds a right.
//
// It runs the script three times, on keys of its own that expire soon; in Redis
// Cluster five times, in slots far apart, so that a missing master shows, or a
// client that is not one for Redis Cluster. Of the script's commands it runs
// those that most calls need; package lua lists all.
//
// An error whose [Classify] is ErrorConfiguration says what to do, and will not
// pass by itself; others may. It ends when ctx does, or each script after the
// limiter's Timeout. Once Redis can decide, what it finds to be wrong otherwise is
// observed: see [Redis.Findings].
func (r *Redis) Ready(ctx context.Context) error {
	for _, checks := range probes() {
		err := r.Allow(ctx, checks)
		if err == nil {
			continue
		}
		if advice := rowOf(err).advice; advice != "" {
			return fmt.Errorf("%w (%s)", err, advice)
		}
		return err
	}
	r.examineOnce(ctx)
	return nil
}

// probePolicy's suffix keeps it apart from everybody's policies.
const probePolicy = "penstock~ready"

// probes are two takes, of a key that is new and of one that is not, which are
// what most scripts are; and settlements that between them write a log and
// delete, and cannot be in one call with them. Their keys lie in different
// quarters of the slots of a Cluster.
func probes() [3][]Check {
	bucket, window, log := TokenBucket(10, time.Second), FixedWindow(1, time.Millisecond), SlidingWindowLog(10, time.Millisecond)
	return [3][]Check{
		{{Policy: probePolicy, Key: "probe=0", Limit: bucket, Cost: 1}},
		{{Policy: probePolicy, Key: "probe=0", Limit: bucket, Cost: 1}},
		{
			{Policy: probePolicy, Key: "probe=1", Limit: log, Cost: 1, Op: Force},
			{Policy: probePolicy, Key: "probe=1", Limit: log, Cost: 1, Op: Force},
			{Policy: probePolicy, Key: "probe=2", Limit: window, Op: Reset},
			{Policy: probePolicy, Key: "probe=3", Limit: window, Op: Reset},
		},
	}
}
