// A Cluster that has lost a shard.

package shared

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// keysOfShards returns at least n keys of each of three masters.
func keysOfShards(n int) (shards [3][]string) {
	for i := 0; len(shards[0]) < n || len(shards[1]) < n || len(shards[2]) < n; i++ {
		key := fmt.Sprint("usr=", i)
		shard := int(slotOf(key)) * len(shards) / clusterSlots
		shards[shard] = append(shards[shard], key)
	}
	return shards
}

// TestDeadShardLeavesOthers: one of three shards is dead. Then the others stall
// once, so that all circuits open. From 2 s after the stall, Redis decides at
// least 60 % of all calls again, of each failure mode. Two thirds are possible.
func TestDeadShardLeavesOthers(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const wanted, perShard = 60, 200 // per cent, and keys
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
	shards := keysOfShards(perShard)
	modes := []struct {
		name string
		fail algorithms.FailureMode
		*arrivals
	}{{"FailLocal", algorithms.FailLocal, nil}, {"FailClosed", algorithms.FailClosed, nil}, {"FailOpen", algorithms.FailOpen, nil}}
	for i := range modes {
		m := &modes[i]
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
		t.Cleanup(func() { _ = client.Close() })
		limiter := must(t, client, &Options{Prefix: m.name, Deadline: unhurried(defaultDeadline)})
		m.arrivals = startArrivals(t, limiter, time.Second/60, func(i int) algorithms.Check {
			key := shards[i%3][i/3%perShard]
			return algorithms.Check{Policy: "p", Key: key, Limit: ample, Cost: 1, Fail: m.fail}
		})
		m.awaitRedis(t, time.Time{})
	}
	log := func(what string, from time.Time) (least int) {
		least = 100
		for i := range modes {
			calls, byRedis := modes[i].between(from, time.Now().Add(-2*unhurried(defaultDeadline)))
			s := modes[i].limiter.Stats().Fallback
			t.Logf("%s: %s: Redis decides %s; %d trips, %d circuits open, %d keys owed", what, modes[i].name,
				percent(byRedis, len(calls)), s.Trips, s.Open, s.Owed)
			least = min(least, 100*byRedis/max(1, len(calls)))
		}
		return least
	}
	began := time.Now()
	time.Sleep(500 * time.Millisecond)
	log("all shards", began)

	cluster.Nodes()[1].Kill()
	began = time.Now()
	time.Sleep(3 * time.Second)
	log("one is dead", began)

	for _, i := range []int{0, 2} {
		cluster.Nodes()[i].Stop()
	}
	time.Sleep(400 * time.Millisecond)
	for _, i := range []int{0, 2} {
		cluster.Nodes()[i].Continue()
	}
	began = time.Now()
	time.Sleep(2 * time.Second)
	log("until 2 s after the stall", began)
	for range attempts { // the machine may be busy
		began = time.Now()
		time.Sleep(3 * time.Second)
		if log("afterwards", began) >= wanted {
			return
		}
	}
	t.Errorf("Redis decides less than %d %% of the calls", wanted)
}

// TestDeadShardRefusesItsOwnLogins: one limiter has calls that fail locally, half
// of them with hot keys on the dead shard, and logins that fail closed, evenly on
// all shards. A third of the logins cannot be decided. At most 40 % are refused.
func TestDeadShardRefusesItsOwnLogins(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const most = 40 // per cent
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
	shards := keysOfShards(100)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	limiter := must(t, client, &Options{Deadline: unhurried(defaultDeadline)})
	orders := startArrivals(t, limiter, time.Second/100, func(i int) algorithms.Check {
		key := shards[i%3][i%100]
		if i%2 == 0 {
			key = shards[1][i%4] // hot
		}
		return algorithms.Check{Policy: "orders", Key: key, Limit: ample, Cost: 1}
	})
	logins := startArrivals(t, limiter, time.Second/30, func(i int) algorithms.Check {
		return algorithms.Check{Policy: "login", Key: shards[i%3][i/3%100], Limit: ample, Cost: 1, Fail: algorithms.FailClosed, Exact: true}
	})
	orders.awaitRedis(t, time.Time{})
	logins.awaitRedis(t, time.Time{})
	cluster.Nodes()[1].Kill()
	for range attempts { // the machine may be busy
		began := time.Now()
		time.Sleep(6 * time.Second)
		calls, byRedis := logins.between(began, time.Now().Add(-2*unhurried(defaultDeadline)))
		t.Logf("%s of the logins are refused; %d trips", percent(len(calls)-byRedis, len(calls)), limiter.Stats().Fallback.Trips)
		if 100*(len(calls)-byRedis) <= most*len(calls) {
			return
		}
	}
	t.Errorf("more than %d %% of the logins are refused", most)
}
