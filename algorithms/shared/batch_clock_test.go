// Servers whose clocks step, or differ.

package shared

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// The clock of a server that steps by 5 s, in either direction, loses no timely
// take: Redis decides each, and once.
func TestServerClockSteps(t *testing.T) {
	clock := redistest.SkewClocks(t, 0)
	server := redistest.Start(t)
	limiter := must(t, server.Client(), &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	w := &witnesses{limiter: limiter, limit: algorithms.FixedWindow(10, 1_000*time.Hour)}
	w.ask(t, 4)
	redistest.Until(t, "Redis decides", func() bool { return w.count(algorithms.Shared) > 100 })
	for _, ahead := range []time.Duration{5 * time.Second, 0, -5 * time.Second, 0, time.Hour, 0} {
		clock.Step(ahead)
		n := w.count(algorithms.Shared)
		redistest.Until(t, "Redis decides after a step", func() bool { return w.count(algorithms.Shared) > n+100 })
	}
	w.leave()
	w.wantSharedOnce(t)
}

func (w *witnesses) wantSharedOnce(t *testing.T) {
	t.Helper()
	for _, one := range w.all {
		if one.decision.Source != algorithms.Shared || one.decision.Remaining != w.limit.Burst()-1 {
			t.Fatalf("%s: got %+v, want Redis to admit it, once; errors of Redis: %v",
				one.key, one.decision, w.limiter.Stats().Redis.Errors)
		}
	}
	first := uint64(0) // scripts that were not sent before
	s := w.limiter.Stats().Redis
	for _, n := range s.Batches {
		first += n
	}
	if again := s.Scripts - first - s.ScriptLoads; again == 0 {
		t.Error("no script was late and sent again: nothing was tried")
	}
}

// Nodes of a Cluster whose clocks differ by minutes lose no timely take either, nor
// does a replica that is promoted and has another clock.
func TestClusterClocksDiffer(t *testing.T) {
	redistest.SkipOn(t, "KeyDB", "after CLUSTER FAILOVER, KeyDB leaves calls that it held without an answer")
	redistest.SkewClocks(t, time.Minute)
	cluster := redistest.StartClusterWithReplicas(t, "--cluster-node-timeout", "5000") // a busy node is not dead
	limiter := must(t, cluster.Client(), &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	w := &witnesses{limiter: limiter, limit: algorithms.TokenBucket(10, 1_000*time.Hour)}
	w.ask(t, 8)
	redistest.Until(t, "Redis decides", func() bool { return w.count(algorithms.Shared) > 2_000 })
	for _, slot := range []int{0, slotsPerLane * 32, clusterSlots - 1} {
		replica := cluster.Replica(cluster.Master(slot))
		do(t, replica.Client(), "cluster", "failover")
		cluster.WaitPromoted(replica)
		n := w.count(algorithms.Shared)
		redistest.Until(t, "Redis decides after a promotion", func() bool { return w.count(algorithms.Shared) > n+2_000 })
	}
	w.leave()
	w.wantSharedOnce(t)
}

// A lane may have slots of two masters. Their clocks do not mix: no script is sent
// twice, except the first ones.
func TestLaneOfTwoMasters(t *testing.T) {
	redistest.SkewClocks(t, time.Minute)
	cluster := redistest.StartCluster(t)
	limiter := must(t, cluster.Client(), &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	limit := algorithms.TokenBucket(10, 1_000*time.Hour)
	const lane = clusterSlots / 3 / slotsPerLane
	first, last := cluster.Master(lane*slotsPerLane), cluster.Master(lane*slotsPerLane+slotsPerLane-1)
	if first == last {
		t.Fatalf("lane %d has one master", lane)
	}
	keyOf := func(master *redistest.Server) string {
		for i := 0; ; i++ {
			key := fmt.Sprint("usr=", i)
			slot := cluster.Slot(limiter.StoredKey(algorithms.Check{Policy: "default", Key: key, Limit: limit}))
			if slot/slotsPerLane == lane && cluster.Master(slot) == master {
				return key
			}
		}
	}
	keys := []string{keyOf(first), keyOf(last)}
	for range 50 {
		for _, key := range keys {
			take(t, limiter, key, limit, 0)
		}
	}
	s, batches := limiter.Stats().Redis, uint64(0)
	for _, n := range s.Batches {
		batches += n
	}
	if again := s.Scripts - batches - s.ScriptLoads; again > 4 {
		t.Errorf("%d of %d scripts were sent again, want the first ones only", again, s.Scripts)
	}
}
