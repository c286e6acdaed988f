// The lanes of a Cluster: one for each master.

package shared

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// wantLanes reports an error if the keys are not in the lanes of their masters.
func wantLanes(t *testing.T, cluster *redistest.Cluster, l *Limiter, keys []string) {
	t.Helper()
	for _, key := range keys {
		stored := bucketKey(key)
		want := cluster.Master(cluster.Slot(stored)).Addr()
		if got := l.redis.lane(stored); got != l.redis.laneMap()[want] {
			t.Errorf("%s is not in the lane of %s", key, want)
		}
	}
}

// Before the first answer all keys share a lane. Then each master has one, and a key
// moves with its slot.
func TestLanesOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	l, limit, keys := newRedis(t, cluster.Client(), nil), algorithms.TokenBucket(10, time.Hour), manyKeys(30)
	first := l.redis.lane(bucketKey(keys[0]))
	for _, key := range keys {
		if l.redis.lane(bucketKey(key)) != first {
			t.Error("got two lanes before the client knows the masters")
		}
	}
	errs, _ := askAll(context.Background(), l, limit, keys)
	for key, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	wantLanes(t, cluster, l, keys)
	if got, want := slices.Sorted(maps.Keys(l.redis.laneMap())), slices.Sorted(slices.Values(append(cluster.Addrs(), ""))); !slices.Equal(got, want) {
		t.Errorf("got lanes of %q, want %q", got, want)
	}

	// Each circuit has a key that its master holds, but not the key of the first lane.
	for addr, lane := range l.redis.laneMap() {
		key, ok := l.redis.probeKey(lane.Circuit.(*circuit.Circuit), "probe")
		if ok != (addr != "") || ok && cluster.Master(cluster.Slot("{"+key+"}")).Addr() != addr {
			t.Errorf("%q: got key %s (%t), want one of the master", addr, key, ok)
		}
	}
	if _, has := l.redis.laneMap()[""]; has || len(l.redis.laneMap()) != 3 {
		t.Errorf("got lanes %v, want those of the three masters", l.redis.laneMap())
	}

	key := keys[0]
	slot := cluster.Slot(bucketKey(key))
	from := cluster.Master(slot)
	to := cluster.Nodes()[(slices.Index(cluster.Nodes(), from)+1)%3]
	do(t, from.Client(), "flushall") // a slot with keys stays
	id := to.Client().ClusterMyID(t.Context()).Val()
	for _, node := range append([]*redistest.Server{to}, cluster.Nodes()...) {
		do(t, node.Client(), "cluster", "setslot", slot, "node", id)
	}
	redistest.Until(t, "the key is in the other lane", func() bool {
		_, err := algorithms.Allow(t.Context(), l, key, limit)
		return err == nil && l.redis.lane(bucketKey(key)) == l.redis.laneMap()[to.Addr()]
	})
	wantLanes(t, cluster, l, keys)
}

// After a failover the keys are in the lane of the new master. The old one has no slots,
// so no key can probe it, and its lane ends.
func TestLanesAfterAFailover(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	redistest.SkipOn(t, "KeyDB", "after CLUSTER FAILOVER, KeyDB leaves calls that it held without an answer")
	cluster := redistest.StartClusterWithReplicas(t, "--cluster-node-timeout", "5000") // a busy node is not dead
	l, limit, keys := newRedis(t, cluster.Client(), nil), algorithms.TokenBucket(10, time.Hour), manyKeys(12)
	ask := func() error {
		errs, _ := askAll(context.Background(), l, limit, keys)
		for key, err := range errs {
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	}
	old := cluster.Nodes()[0]
	redistest.Until(t, "the masters are known", func() bool { return ask() == nil && l.redis.laneMap()[old.Addr()] != nil })
	before := l.redis.laneMap()[old.Addr()]
	replica := cluster.Replica(old)
	cluster.Promote(replica)
	redistest.Until(t, "the new master has a lane", func() bool { return ask() == nil && l.redis.laneMap()[replica.Addr()] != nil })
	redistest.Until(t, "no key is in the lane of the old master", func() bool {
		return ask() == nil && !slices.ContainsFunc(keys, func(key string) bool { return l.redis.lane(bucketKey(key)) == before })
	})
	wantLanes(t, cluster, l, keys)
	if key, ok := l.redis.probeKey(before.Circuit.(*circuit.Circuit), "probe"); ok || l.redis.laneMap()[old.Addr()] != nil {
		t.Errorf("got the key %s to probe a master without slots, want none, and no lane", key)
	}
	if key, ok := l.redis.probeKey(l.redis.laneMap()[replica.Addr()].Circuit.(*circuit.Circuit), "probe"); !ok {
		t.Errorf("got no key to probe the new master: %s", key)
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
}
