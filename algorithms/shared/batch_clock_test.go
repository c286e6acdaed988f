// Servers whose clocks step, or differ.

package shared

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
		if one.decision.Source != algorithms.Shared {
			t.Fatalf("%s: got %+v, want Redis to admit it", one.key, one.decision)
		}
	}
	w.wantOnce(t)
}

// wantOnce wants every key to be charged once, and some calls to be sent again because their server's clock differs.
func (w *witnesses) wantOnce(t *testing.T) {
	t.Helper()
	for _, one := range w.all {
		if one.decision.Remaining != w.limit.Burst()-1 {
			t.Fatalf("%s: got %+v, want one charge", one.key, one.decision)
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

// A clock may step again while a call that came too late for it is sent again.
func TestServerClockStepsTwice(t *testing.T) {
	clock := redistest.SkewClocks(t, 0)
	server := redistest.Start(t)
	client := &stepping{Client: server.Client()}
	limiter := must(t, client, &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	limit := algorithms.FixedWindow(10, 1_000*time.Hour)
	take(t, limiter, "usr=1", limit, 0) // tells the limiter the server's clock
	client.before = func(n int) {
		if n < maxLate {
			clock.Step(time.Duration(n+1) * time.Minute)
		}
	}
	if d := take(t, limiter, "usr=2", limit, 1); d.Source != algorithms.Shared || d.Remaining != 9 || client.sent != maxLate+1 {
		t.Errorf("got %+v after %d scripts, want Redis to admit it with the third", d, client.sent)
	}
	client.before = func(n int) { clock.Step(time.Duration(n+maxLate+1) * time.Minute) }
	if d := take(t, limiter, "usr=3", limit, 1); d.Source != algorithms.Local || client.sent != 2*(maxLate+1) {
		t.Errorf("got %+v after %d scripts, want no further attempt", d, client.sent)
	}
}

// stepping is a client that calls before ahead of each command, with the number of
// earlier commands.
type stepping struct {
	*redis.Client
	before func(n int)
	sent   int
}

func (s *stepping) Process(ctx context.Context, cmd redis.Cmder) error {
	if s.before != nil {
		s.before(s.sent)
		s.sent++
	}
	return s.Client.Process(ctx, cmd)
}

// Nodes of a Cluster whose clocks differ by minutes lose no timely take either, nor
// does a replica that is promoted and has another clock. During a promotion Redis may
// say for a moment that the Cluster is down.
func TestClusterClocksDiffer(t *testing.T) {
	redistest.SkipOn(t, "KeyDB", "after CLUSTER FAILOVER, KeyDB leaves calls that it held without an answer")
	redistest.SkewClocks(t, time.Minute)
	cluster := redistest.StartClusterWithReplicas(t, "--cluster-node-timeout", "5000") // a busy node is not dead
	o := cluster.Client().Options()
	o.ReadTimeout = time.Minute // a master holds calls back for as long as a promotion takes
	client := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = client.Close() })
	limiter := must(t, client, &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	w := &witnesses{limiter: limiter, limit: algorithms.TokenBucket(10, 1_000*time.Hour)}
	w.ask(t, 8)
	redistest.Until(t, "Redis decides", func() bool { return w.count(algorithms.Shared) > 2_000 })
	for _, slot := range []int{0, slotsPerLane * 32, clusterSlots - 1} {
		replica := cluster.Replica(cluster.Master(slot))
		cluster.Promote(replica)
		n := w.count(algorithms.Shared)
		redistest.Until(t, "Redis decides after a promotion", func() bool { return w.count(algorithms.Shared) > n+2_000 })
	}
	w.leave()
	w.wantOnce(t)
	for reason, n := range limiter.Stats().Redis.Errors {
		if n > 0 && reason != reasonUnavailable {
			t.Errorf("%d calls failed: %s", n, reason)
		}
	}
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
