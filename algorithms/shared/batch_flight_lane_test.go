// How many batches are in flight: lanes and real servers behind a slow network.

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

func (l *Limiter) levelOf(slot int) int {
	lane := l.redis.lane(uint16(slot))
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return lane.flight.level
}

// Over a slow network half of the pool is in use. A batch that is late or that fails
// ends the level, and the level comes back.
func TestFlightFollowsTheNetwork(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	network := redistest.Delay(40 * time.Millisecond)
	proxy.Set(network)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: 24})
	t.Cleanup(func() { _ = client.Close() })
	l := must(t, client, &Options{Deadline: time.Second, DenyCacheKeys: DenyCacheOff})
	w := &witnesses{limiter: l, limit: algorithms.TokenBucket(10, 1_000*time.Hour)}
	w.ask(t, 48)
	half := func() bool { return l.levelOf(0) == 12 }
	redistest.Until(t, "half of the pool is in use", half)
	proxy.Set(redistest.BlackHole())
	redistest.Until(t, "a late batch ends the level", func() bool { return l.levelOf(0) == fewInFlight })
	proxy.Set(network)
	redistest.Until(t, "half of the pool is in use again", half)
	proxy.Set(redistest.Cut())
	redistest.Until(t, "the circuit opens", func() bool { return l.Stats().Fallback.Open })
	if level := l.levelOf(0); level != fewInFlight {
		t.Errorf("got level %d after batches that failed, want %d", level, fewInFlight)
	}
	w.leave()
	if n := l.redis.extra.Load(); n != 0 {
		t.Errorf("%d places in flight are taken, and no call is left", n)
	}
}

// A farCluster is a Cluster behind a slow network.
type farCluster struct {
	*redis.ClusterClient
	trip time.Duration
}

func (c farCluster) Process(ctx context.Context, cmd redis.Cmder) error {
	err := c.ClusterClient.Process(ctx, cmd)
	time.Sleep(c.trip) // the fault
	return err
}

// Each lane of a Cluster has a level of its own, all lanes share half of the pool, and
// a promotion changes neither.
func TestFlightOfClusterLanes(t *testing.T) {
	t.Parallel()
	redistest.SkipOn(t, "KeyDB", "after CLUSTER FAILOVER, KeyDB leaves calls that it held without an answer")
	cluster := redistest.StartClusterWithReplicas(t, "--cluster-node-timeout", "5000") // a busy node is not dead
	o := cluster.Client().Options()
	o.PoolSize = 16
	client := farCluster{redis.NewClusterClient(o), 40 * time.Millisecond}
	t.Cleanup(func() { _ = client.Close() })
	l := must(t, client, &Options{Deadline: 10 * time.Second, DenyCacheKeys: DenyCacheOff})
	limit := algorithms.TokenBucket(1_000_000, time.Second)
	slots := [2]int{100, clusterSlots - 100}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	callers := 0
	for _, slot := range slots {
		key := keyInLane(t, cluster, l, slot)
		for range 24 {
			callers++
			go func() {
				defer func() { done <- struct{}{} }()
				for ctx.Err() == nil {
					if d, err := algorithms.Allow(context.Background(), l, key, limit); err != nil || d.Source != algorithms.Shared {
						t.Errorf("got %+v, %v, want Redis to decide", d, err)
						return
					}
				}
			}()
		}
	}
	busy := func() bool {
		extra := l.redis.extra.Load()
		if extra > 8 {
			t.Errorf("%d batches more than two for each lane are in flight, want at most half of the pool of 16", extra)
		}
		return extra == 8 && l.levelOf(slots[0]) > fewInFlight && l.levelOf(slots[1]) > fewInFlight
	}
	redistest.Until(t, "both lanes use half of the pool", busy)
	if unused := l.levelOf(clusterSlots / 2); unused != 0 {
		t.Errorf("a lane without calls has level %d", unused)
	}
	replica := cluster.Replica(cluster.Master(slots[0]))
	cluster.Promote(replica)
	redistest.Until(t, "both lanes use half of the pool after a promotion", busy)
	stop()
	for range callers {
		<-done
	}
}

// keyInLane returns a key whose slot is in the lane of a slot.
func keyInLane(t *testing.T, cluster *redistest.Cluster, l *Limiter, slot int) string {
	t.Helper()
	for i := range 100_000 {
		key := fmt.Sprint("usr=", i)
		c := algorithms.Check{Policy: "default", Key: key, Limit: algorithms.TokenBucket(1, time.Second)}
		if cluster.Slot(l.StoredKey(c))/slotsPerLane == slot/slotsPerLane {
			return key
		}
	}
	t.Fatal("no key in the lane")
	return ""
}
