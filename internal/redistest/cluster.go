package redistest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masters   = 3
	slotCount = 16384
)

// A Cluster is a Redis Cluster of three masters, with one replica each or none.
type Cluster struct {
	tb     testing.TB
	nodes  []*Server // the first three began as masters
	client func() *redis.ClusterClient
}

// StartCluster starts three masters that share all slots, gives each the extra arguments of redis-server, and returns
// when WaitReady would. That takes a little over 2 s, because a fresh master refuses keys for its first 2 s. The nodes
// consider a silent peer dead after 2 s. While a master is dead, no node serves, unless cluster-require-full-coverage is
// no.
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := newCluster(tb, masters, append([]string{"--cluster-node-timeout", "2000"}, args...))
	c.WaitReady()
	return c
}

// StartClusterWithReplicas is StartCluster with a replica for each master. The nodes consider a silent peer dead after
// 1 s. The replica of a dead master takes its place within about 3 s; see WaitPromoted.
func StartClusterWithReplicas(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := newCluster(tb, 2*masters, append([]string{
		"--cluster-node-timeout", "1000",
		"--repl-diskless-sync-delay", "0",
		"--repl-ping-replica-period", "1", // nodes do not count a replica that has received nothing
	}, args...))
	for i, replica := range c.nodes[masters:] {
		c.await("each replica follows its master", func() string { return replica.follow(c.nodes[i]) })
	}
	c.WaitReady()
	return c
}

// newCluster starts n nodes and divides the slots among the first three.
func newCluster(tb testing.TB, n int, args []string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range n {
		c.nodes = append(c.nodes, start(tb, kind{bus: true}, append([]string{
			"--cluster-enabled", "yes",
			"--cluster-config-file", "nodes.conf",
			"--cluster-announce-ip", "127.0.0.1",
		}, args...)))
	}
	c.client = sync.OnceValue(func() *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	for i, node := range c.nodes[:masters] {
		if err := node.found(i); err != nil {
			tb.Fatalf("redistest: cluster node %s: %v", node.Addr(), err)
		}
	}
	return c
}

// found makes a fresh node master number i with its share of the slots. It gives each master its own epoch: nodes with
// equal epochs would first agree on new ones, and could change the owners of slots meanwhile.
func (s *Server) found(i int) error {
	slots := []any{"CLUSTER", "ADDSLOTS"}
	for slot := i * slotCount / masters; slot < (i+1)*slotCount/masters; slot++ {
		slots = append(slots, slot)
	}
	return errors.Join(s.ask(slots...).Err(), s.ask("CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
}

// follow makes a node without slots a replica of master. It returns the error if that fails, for example because the
// nodes have not met yet, and otherwise "".
func (s *Server) follow(master *Server) string {
	if err := s.ask("CLUSTER", "REPLICATE", master.ask("CLUSTER", "MYID").Val()).Err(); err != nil {
		return err.Error()
	}
	return ""
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string { return addrsOf(c.nodes) }

func addrsOf(servers []*Server) (addrs []string) {
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Nodes returns all servers: first the original masters in the order of their slots, then their replicas in the same
// order.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Client returns a client with go-redis's default options. All calls return the same one, and the end of the test
// closes it.
func (c *Cluster) Client() *redis.ClusterClient { return c.client() }

// WaitReady waits until every node serves, knows all others, and considers every slot served. In a Cluster with replicas,
// every node must also see a replica of every master. WaitReady fails the test after [Patience]. Call it after the restart
// of a node. Like Restart, it belongs to the goroutine that runs the test.
func (c *Cluster) WaitReady() {
	c.tb.Helper()
	c.await("the cluster is ready", c.state)
}

// await waits until state returns "". Until then it introduces the nodes to each other every second.
func (c *Cluster) await(condition string, state func() string) {
	c.tb.Helper()
	var invited time.Time
	UntilEmpty(c.tb, condition, func() string {
		missing := state()
		// A node forgets an invitation that is not answered within a second or two.
		if missing != "" && time.Since(invited) > time.Second {
			c.invite()
			invited = time.Now()
		}
		return missing
	})
}

// invite introduces every node to every other one. Nodes that have met ignore it.
func (c *Cluster) invite() {
	for i, node := range c.nodes {
		for _, peer := range c.nodes[i+1:] {
			node.ask("CLUSTER", "MEET", "127.0.0.1", peer.port) // the state shows a node that is down
		}
	}
}

// state returns what keeps the first unready node from being ready, or "".
func (c *Cluster) state() string {
	for _, node := range c.nodes {
		info, err := node.ask("CLUSTER", "INFO").Text()
		if err != nil {
			return fmt.Sprintf("%s: %v", node.Addr(), err)
		}
		for _, want := range []string{
			"cluster_state:ok",
			fmt.Sprint("cluster_slots_ok:", slotCount),
			fmt.Sprint("cluster_known_nodes:", len(c.nodes)),
			fmt.Sprint("cluster_size:", masters),
		} {
			if !strings.Contains(info, want+"\r\n") {
				return fmt.Sprintf("%s: want %s, got\n%s", node.Addr(), want, info)
			}
		}
		if missing := c.followers(node); missing != "" {
			return node.Addr() + ": " + missing
		}
	}
	return ""
}
