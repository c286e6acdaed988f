// Whether Redis can decide: a few scripts that find what a ping does not.

package shared

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// ready implements [Limiter.Ready], without the circuit. Its scripts run the
// commands that most calls need; package lua lists all. Once Redis can decide,
// ready also reports findings.
func (r *redisLayer) ready(ctx context.Context) error {
	for _, checks := range probes() {
		c, err := newCall(checks)
		if err != nil {
			return err
		}
		err = r.decide(ctx, c)
		c.free()
		if err != nil {
			return notReady(err)
		}
	}
	r.examineOnce(ctx)
	return nil
}

// readyPolicy's suffix keeps it apart from all policies of callers.
const readyPolicy = "penstock~ready"

// probes are the calls of ready. Most scripts are takes, of a key that is new
// and of a key that is not. The settlements between them write a log and delete
// keys, and cannot be in one call with takes. The keys lie in different quarters
// of the slots of a Cluster, so that a missing master shows.
func probes() [3][]algorithms.Check {
	bucket := algorithms.TokenBucket(10, time.Second)
	window := algorithms.FixedWindow(1, time.Millisecond)
	log := algorithms.SlidingWindowLog(10, time.Millisecond)
	return [3][]algorithms.Check{
		{{Policy: readyPolicy, Key: "probe=0", Limit: bucket, Cost: 1}},
		{{Policy: readyPolicy, Key: "probe=0", Limit: bucket, Cost: 1}},
		{
			{Policy: readyPolicy, Key: "probe=1", Limit: log, Cost: 1, Op: algorithms.Force},
			{Policy: readyPolicy, Key: "probe=1", Limit: log, Cost: 1, Op: algorithms.Force},
			{Policy: readyPolicy, Key: "probe=2", Limit: window, Op: algorithms.Reset},
			{Policy: readyPolicy, Key: "probe=3", Limit: window, Op: algorithms.Reset},
		},
	}
}
