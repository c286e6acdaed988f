package main

import (
	"context"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A dialer connects a client to servers through proxies.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// A topology is one kind of deployment of Redis.
type topology struct {
	servers  []*redistest.Server // that hold data
	circuits int                 // of a limiter: one for each master

	// masters returns the servers that take writes.
	masters func() []*redistest.Server
	// client returns a client with go-redis's default settings.
	client func(dialer) redis.UniversalClient
	// ready waits until all servers serve, and every master has its replica.
	ready func()
	// replica returns the replica of a master. It is nil if there are none.
	replica func(master *redistest.Server) *redistest.Server
	// promoted waits until a replica has taken the place of its master.
	promoted func(replica *redistest.Server)
}

// A kind of topology has a name, and can be started.
type kind struct {
	name  string
	start func(*nottest.Owner) *topology
}

// topologies returns the topologies that a soak goes through: one, or all.
func topologies(only string) (kinds []kind) {
	for _, k := range []kind{{"standalone", standalone}, {"sentinel", sentinel}, {"cluster", cluster}} {
		if only == "" || only == k.name {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func standalone(owner *nottest.Owner) *topology {
	server := redistest.Start(owner)
	servers := []*redistest.Server{server}
	return &topology{
		servers: servers, circuits: 1,
		masters: func() []*redistest.Server { return servers },
		client: func(dial dialer) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: dial})
		},
		ready: func() {},
	}
}

func sentinel(owner *nottest.Owner) *topology {
	s := redistest.StartSentinel(owner)
	return &topology{
		servers: []*redistest.Server{s.Primary(), s.Replica()}, circuits: 1,
		masters: func() []*redistest.Server { return []*redistest.Server{s.Primary()} },
		client: func(dial dialer) redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: s.MasterName(), SentinelAddrs: s.Addrs(), Dialer: dial,
			})
		},
		ready:    s.WaitReady,
		replica:  func(*redistest.Server) *redistest.Server { return s.Replica() },
		promoted: s.WaitPromoted,
	}
}

func cluster(owner *nottest.Owner) *topology {
	c := redistest.StartClusterWithReplicas(owner)
	slots := []int{0, clusterSlots / 2, clusterSlots - 1} // one of each master
	return &topology{
		servers: c.Nodes(), circuits: len(slots),
		masters: func() (masters []*redistest.Server) {
			for _, slot := range slots {
				masters = append(masters, c.Master(slot))
			}
			return masters
		},
		client: func(dial dialer) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Dialer: dial})
		},
		ready: c.WaitReady, replica: c.Replica, promoted: c.WaitPromoted,
	}
}

const clusterSlots = 16384

// places returns the addresses of the masters, sorted.
func (t *topology) places() (addrs []string) {
	for _, m := range t.masters() {
		addrs = append(addrs, m.Addr())
	}
	slices.Sort(addrs)
	return addrs
}
