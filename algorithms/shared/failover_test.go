// Masters that die or are demoted, while a crowd goes on asking.

package shared

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestSentinelFailover: a primary dies and its replica is promoted. Then a planned
// failover promotes the former primary again.
func TestSentinelFailover(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := redistest.StartSentinel(t)
	first, second := s.Primary(), s.Replica()
	c := newCrowd(t, s.Client(), manyKeys(20)[:10]...)
	c.awaitScarce()

	killed := time.Now()
	first.Kill()
	shared := c.count("counted", isShared)
	waitCutOff(t, second)
	lagged := shared - c.known(newRedis(t, second.Client(), nil), c.keys)
	s.WaitPromoted(second)
	promoted := time.Now()
	t.Logf("promoted %v after the kill; Redis decides again after %v", promoted.Sub(killed), c.awaitShared(killed, c.keys).Sub(killed))
	c.leave()
	c.wantOutage()
	c.wantServed(c.wantLost(lagged))

	first.Restart()
	s.WaitReady()
	c = newCrowd(t, s.Client(), manyKeys(20)[10:]...)
	c.awaitScarce()
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	defer sentinel.Close()
	began := time.Now()
	if err := sentinel.Failover(t.Context(), s.MasterName()).Err(); err != nil {
		t.Fatal(err)
	}
	s.WaitPromoted(first)
	promoted = time.Now()
	s.WaitReady()
	ready := time.Now()
	t.Logf("as planned, promoted after %v; Redis decides again after %v", promoted.Sub(began), c.awaitShared(began, c.keys).Sub(began))
	c.leave()
	// The former primary charges until it is demoted.
	charged := c.count("counted", func(a answered) bool { return isShared(a) && a.at.After(began) && a.at.Before(ready) })
	c.wantLost(charged)
	c.wantServed(1 + int64(ready.Sub(began)/scarceEvery)) // of a scarce key, in that time
}

// waitCutOff waits until a replica has read everything that a dead master sent.
func waitCutOff(t *testing.T, replica *redistest.Server) {
	t.Helper()
	redistest.Until(t, "the replica has lost its master", func() bool {
		return strings.Contains(replica.Client().Info(t.Context(), "replication").Val(), "master_link_status:down")
	})
}

// TestReadonly: units that a server refuses while it is a replica are charged when
// it leads again, to the last unit.
func TestReadonly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := newCrowd(t, server.Client(), manyKeys(10)...)
	c.awaitScarce()
	for range 2 {
		c.awaitShared(time.Now(), c.keys)
		do(t, server.Client(), "replicaof", "127.0.0.1", "1") // where no server is
		local := c.count("counted", isLocal)
		redistest.Until(t, "the crowd is decided locally", func() bool { return c.count("counted", isLocal) > local+100 })
		do(t, server.Client(), "replicaof", "no", "one")
	}
	c.awaitShared(time.Now(), c.keys)
	c.leave()
	if c.failed(trouble.Failover) == 0 {
		t.Error("no script failed by READONLY")
	}
	c.wantOutage()
	c.wantServed(crowdSize) // they went twice
	s := c.limiter.Stats().Fallback
	if lost := c.lost(); lost < 0 || lost > int64(s.Lost)+s.Unknown {
		t.Errorf("got %d units lost: %+v", lost, s)
	}
}

// TestClusterFailover: one of three masters dies, and its replica is promoted.
// Meanwhile no shard serves.
func TestClusterFailover(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	cluster := redistest.StartClusterWithReplicas(t)
	var keys [3][]string // by shard
	for _, key := range manyKeys(30) {
		shard := cluster.Slot("{"+key+"}") * len(keys) / 16384
		keys[shard] = append(keys[shard], key)
	}
	others := slices.Concat(keys[0], keys[2])
	c := newCrowd(t, cluster.Client(), slices.Concat(keys[1], others)...)
	c.awaitScarce()

	dead := cluster.Nodes()[1]
	replica := cluster.Replica(dead)
	reader := replica.Client().Conn()
	defer reader.Close()
	if err := reader.ReadOnly(t.Context()).Err(); err != nil { // otherwise it redirects to its master
		t.Fatal(err)
	}
	killed := time.Now()
	dead.Kill()
	shared := c.count("counted", func(a answered) bool { return isShared(a) && slices.Contains(keys[1], a.key) })
	waitCutOff(t, replica)
	lagged := shared - c.known(newRedis(t, reader, nil), keys[1])
	cluster.WaitPromoted(replica)
	promoted := time.Now()
	t.Logf("promoted %v after the kill; Redis decides again about its keys after %v, and about others after %v",
		promoted.Sub(killed), c.awaitShared(killed, keys[1]).Sub(killed), c.awaitShared(killed, others).Sub(killed))
	c.leave()
	c.wantOutage()
	c.wantServed(c.wantLost(lagged))
}
