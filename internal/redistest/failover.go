package redistest

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	for _, node := range c.nodes {
		if slot, err := node.ask("CLUSTER", "KEYSLOT", key).Int(); err == nil {
			return slot
		}
	}
	c.tb.Fatalf("redistest: no cluster node answers")
	return 0
}

// Master returns the server to which the first node that answers assigns the slot. A master that died keeps its slots
// until a replica takes its place.
func (c *Cluster) Master(slot int) *Server {
	c.tb.Helper()
	for _, r := range c.ranges() {
		if r.Start <= slot && slot <= r.End {
			return c.node(r.Nodes[0].Addr)
		}
	}
	c.tb.Fatalf("redistest: no node serves slot %d", slot)
	return nil
}

// Replica returns the replica of a master, as the first node that answers sees it. It fails the test when there is no live
// replica.
func (c *Cluster) Replica(master *Server) *Server {
	c.tb.Helper()
	for _, r := range c.ranges() {
		if r.Nodes[0].Addr == master.Addr() && len(r.Nodes) > 1 {
			return c.node(r.Nodes[1].Addr)
		}
	}
	c.tb.Fatalf("redistest: %s has no replica", master.Addr())
	return nil
}

// Promote lets a replica and its live master exchange their places. It returns when every node knows that; see
// WaitPromoted. The master delays all writes during the exchange. On a busy machine Redis may give up the exchange after
// 5 s, so Promote asks again.
func (c *Cluster) Promote(replica *Server) {
	c.tb.Helper()
	var asked time.Time
	UntilEmpty(c.tb, replica.Addr()+" is promoted", func() string {
		missing := c.promoted(replica)
		if missing != "" && time.Since(asked) > exchange {
			missing = fmt.Sprintf("%s; CLUSTER FAILOVER: %v", missing, replica.ask("CLUSTER", "FAILOVER").Err())
			asked = time.Now()
		}
		return missing
	})
}

// exchange is longer than the 5 s after which Redis gives up an exchange.
const exchange = 6 * time.Second

// WaitPromoted waits until every node that answers considers the server a master and every slot served. It fails the test
// after [Patience].
func (c *Cluster) WaitPromoted(replica *Server) {
	c.tb.Helper()
	UntilEmpty(c.tb, replica.Addr()+" is promoted", func() string { return c.promoted(replica) })
}

// promoted returns "" if the server is promoted, and otherwise what is missing.
func (c *Cluster) promoted(s *Server) string {
	answers := 0
	for _, node := range c.nodes {
		ranges, err := node.slots()
		if err != nil {
			continue
		}
		answers++
		served, leads := 0, false
		for _, r := range ranges {
			served += r.End - r.Start + 1
			leads = leads || r.Nodes[0].Addr == s.Addr()
		}
		if !leads || served != slotCount {
			return fmt.Sprintf("%s sees %v", node.Addr(), ranges)
		}
		if info, err := node.ask("CLUSTER", "INFO").Text(); err != nil || !strings.Contains(info, "cluster_state:ok") {
			return fmt.Sprintf("%s: %v\n%s", node.Addr(), err, info)
		}
	}
	if answers == 0 {
		return "no cluster node answers"
	}
	return ""
}

// followers returns the first master that has no replica according to node, or says that node itself is a replica without
// data. It returns "" if neither is so.
func (c *Cluster) followers(node *Server) string {
	ranges, err := node.slots()
	if err != nil {
		return err.Error()
	}
	for _, r := range ranges {
		if len(r.Nodes) < len(c.nodes)/masters {
			return fmt.Sprintf("master %s has no replica", r.Nodes[0].Addr)
		}
	}
	if info := node.replication(); info == "" || strings.Contains(info, "master_link_status:down") {
		return "replica has no data yet, or does not answer"
	}
	return ""
}

// ranges returns the ranges of slots with their servers, as the first node that answers sees them.
func (c *Cluster) ranges() []redis.ClusterSlot {
	c.tb.Helper()
	for _, node := range c.nodes {
		if ranges, err := node.slots(); err == nil {
			return ranges
		}
	}
	c.tb.Fatalf("redistest: no cluster node answers")
	return nil
}

func (c *Cluster) node(addr string) *Server {
	c.tb.Helper()
	for _, node := range c.nodes {
		if node.Addr() == addr {
			return node
		}
	}
	c.tb.Fatalf("redistest: %s is no node of the cluster", addr)
	return nil
}

func (s *Server) slots() ([]redis.ClusterSlot, error) {
	client := redis.NewClient(s.quiet())
	defer client.Close()
	//lint:ignore SA1019 servers before Redis 7 have no other command
	return client.ClusterSlots(s.tb.Context()).Result()
}

// replication returns the server's INFO replication, or "" if it does not answer.
func (s *Server) replication() string {
	info, _ := s.ask("INFO", "replication").Text()
	return info
}
