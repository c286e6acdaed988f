package redistest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	masters   = 3
	slotCount = 16384
)

// A Cluster is a Redis Cluster of three masters without replicas. The nodes call a silent peer dead after 2 s.
type Cluster struct {
	tb     testing.TB
	nodes  []*Server
	client func() *redis.ClusterClient
}

// StartCluster starts three masters that share all slots, gives each the extra arguments of redis-server, and returns
// when WaitReady would. That takes a little over 2 s, because a fresh master refuses keys for its first 2 s.
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range masters {
		c.nodes = append(c.nodes, start(tb, true, append([]string{
			"--cluster-enabled", "yes",
			"--cluster-config-file", "nodes.conf",
			"--cluster-announce-ip", "127.0.0.1",
			"--cluster-node-timeout", "2000",
		}, args...)))
	}
	c.client = sync.OnceValue(func() *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	for i, node := range c.nodes {
		if err := node.found(i); err != nil {
			tb.Fatalf("redistest: cluster node %s: %v", node.Addr(), err)
		}
	}
	c.WaitReady()
	return c
}

// found makes a fresh node master number i with its share of the slots. Distinct epochs spare the nodes a settlement
// of them, during which they could change their minds about the slots.
func (s *Server) found(i int) error {
	client := s.quietClient()
	defer client.Close()
	first, end := i*slotCount/masters, (i+1)*slotCount/masters
	return errors.Join(
		client.ClusterAddSlotsRange(s.tb.Context(), first, end-1).Err(),
		client.Do(s.tb.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
	)
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, node := range c.nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// Nodes returns the three servers, in the order of their slots.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Client returns a client with go-redis's default options. All calls return the same one, and the end of the test
// closes it.
func (c *Cluster) Client() *redis.ClusterClient { return c.client() }

// WaitReady waits until every node serves, knows all three, and counts every slot as served. It fails the test after
// 10 s. Call it after the restart of a node. Like Restart, it belongs to the goroutine that runs the test.
func (c *Cluster) WaitReady() {
	c.tb.Helper()
	var state string
	end := time.Now().Add(deadline)
	for invited := (time.Time{}); time.Now().Before(end); time.Sleep(10 * interval) {
		if state = c.state(); state == "" {
			return
		}
		// An invitation that is not answered within a second or two is forgotten, so it is repeated.
		if time.Since(invited) > time.Second {
			c.invite()
			invited = time.Now()
		}
	}
	c.tb.Fatalf("redistest: cluster is not ready after %v: %s", deadline, state)
}

// invite introduces every node to every other. Those that have met are not disturbed by it.
func (c *Cluster) invite() {
	for i, node := range c.nodes {
		client := node.quietClient()
		for _, peer := range c.nodes[i+1:] {
			// A node that is down shows in the state.
			_ = client.ClusterMeet(c.tb.Context(), "127.0.0.1", strconv.Itoa(peer.port)).Err()
		}
		_ = client.Close()
	}
}

// state returns what keeps the first unready node from being ready, or "".
func (c *Cluster) state() string {
	for _, node := range c.nodes {
		info, err := node.clusterInfo()
		if err != nil {
			return fmt.Sprintf("%s: %v", node.Addr(), err)
		}
		for _, want := range []string{
			"cluster_state:ok",
			fmt.Sprint("cluster_slots_ok:", slotCount),
			fmt.Sprint("cluster_known_nodes:", masters),
			fmt.Sprint("cluster_size:", masters),
		} {
			if !strings.Contains(info, want+"\r\n") {
				return fmt.Sprintf("%s: want %s, got\n%s", node.Addr(), want, info)
			}
		}
	}
	return ""
}

func (s *Server) clusterInfo() (string, error) {
	client := s.quietClient()
	defer client.Close()
	return client.ClusterInfo(s.tb.Context()).Result()
}

// quietClient returns a client that sends nothing of its own accord and does not insist.
func (s *Server) quietClient() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     s.Addr(),
		Protocol:                 2,
		DisableIdentity:          true,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              time.Second,
		ReadTimeout:              time.Second,
		PoolSize:                 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
