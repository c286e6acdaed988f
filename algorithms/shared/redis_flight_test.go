// How many batches are in flight: lanes and real servers behind a slow network.

package shared

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Over a slow network four fifths of the pool are in use. A batch that is late or that fails
// ends the level, and the level comes back.
func TestFlightFollowsTheNetwork(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	network := redistest.Delay(40 * time.Millisecond)
	proxy.Set(network)
	client := clientOf(t, proxy.Addr(), func(o *redis.Options) { o.PoolSize = 15 })
	l := must(t, client, &Options{Deadline: time.Second, Views: ViewsOff})
	w := &witnesses{limiter: l, limit: algorithms.TokenBucket(10, 1_000*time.Hour)}
	w.ask(t, 48)
	only := l.redis.lane("")
	most := func() bool { return allowed(only) == 12 }
	redistest.Until(t, "four fifths of the pool are in use", most)
	proxy.Set(redistest.BlackHole())
	redistest.Until(t, "a late batch ends the level", func() bool { return allowed(only) == fewInFlight })
	proxy.Set(network)
	redistest.Until(t, "four fifths of the pool are in use again", most)
	proxy.Set(redistest.Cut())
	redistest.Until(t, "the circuit opens", func() bool { return l.Stats().Fallback.Open > 0 })
	redistest.Until(t, "batches that failed end the level", func() bool { return allowed(only) == fewInFlight })
	w.leave()
	redistest.Until(t, "all places in flight are free", func() bool { return l.redis.underWay() == 0 })
}

// fewInFlight is how many batches a lane may have in flight after trouble.
const fewInFlight = 2

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

// Each master of a Cluster has a lane with a level of its own, up to four
// fifths of the client's pool for a node. After a promotion, the lane of the new master grows, too.
func TestFlightOfClusterLanes(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	redistest.SkipOn(t, "KeyDB", "after CLUSTER FAILOVER, KeyDB leaves calls that it held without an answer")
	cluster := redistest.StartClusterWithReplicas(t, "--cluster-node-timeout", "5000") // a busy node is not dead
	o := cluster.Client().Options()
	o.PoolSize = 10
	client := farCluster{redis.NewClusterClient(o), 40 * time.Millisecond}
	t.Cleanup(func() { _ = client.Close() })
	l := must(t, client, &Options{Deadline: 10 * time.Second, Views: ViewsOff})
	limit := algorithms.TokenBucket(1_000_000, time.Second)
	masters := cluster.Nodes()[:3]
	var keys [3]string
	for i := range keys {
		keys[i] = keyOn(t, cluster, l, masters[i])
	}
	laneOf := func(i int) *batch.Lane {
		return l.redis.lane(l.StoredKey(algorithms.Check{Policy: "default", Key: keys[i], Limit: limit}))
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	callers := 0
	for _, key := range keys[:2] {
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
	redistest.Until(t, "the masters are known", func() bool { return laneOf(0) != laneOf(1) })
	busy := func() bool {
		for i := range keys {
			if level := allowed(laneOf(i)); level > 8 {
				t.Errorf("%d batches may be in flight to master %d, want at most four fifths of the pool of 10", level, i)
			}
		}
		return allowed(laneOf(0)) == 8 && allowed(laneOf(1)) == 8
	}
	redistest.Until(t, "both lanes use four fifths of the pool", busy)
	if unused := allowed(laneOf(2)); unused != 0 {
		t.Errorf("a lane without calls has level %d", unused)
	}
	before := laneOf(0)
	cluster.Promote(cluster.Replica(masters[0]))
	redistest.Until(t, "the keys of the old master have another lane", func() bool { return laneOf(0) != before })
	redistest.Until(t, "both lanes use four fifths of the pool after a promotion", busy)
	stop()
	for range callers {
		<-done
	}
}

// allowed returns how many batches of a lane may be in flight.
func allowed(l *batch.Lane) int {
	_, _, allowed := l.Load()
	return allowed
}

// keyOn returns a key whose takes by buckets are on a master.
func keyOn(t *testing.T, cluster *redistest.Cluster, l *Limiter, master *redistest.Server) string {
	t.Helper()
	for i := range 1_000 {
		key := fmt.Sprint("usr=", i)
		c := algorithms.Check{Policy: "default", Key: key, Limit: algorithms.TokenBucket(1, time.Second)}
		if cluster.Master(cluster.Slot(l.StoredKey(c))) == master {
			return key
		}
	}
	t.Fatal("no key on the master")
	return ""
}
