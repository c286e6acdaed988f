package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

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
	// promote calls kill, which ends a master, and waits until the replica has
	// taken its place. It is nil if there are no replicas.
	promote func(master *redistest.Server, kill func())
}

// A kind of topology has a name, and can be started.
type kind struct {
	name  string
	start func(*nottest.Owner) *topology
}

// topologies returns the topologies that a soak goes through.
func (o options) topologies() (kinds []kind) {
	for _, k := range []kind{{"standalone", standalone}, {"sentinel", sentinel}, {"cluster", cluster}} {
		if o.only == "" || o.only == k.name {
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
		ready: s.WaitReady,
		promote: func(_ *redistest.Server, kill func()) {
			replica := s.Replica()
			kill()
			s.WaitPromoted(replica)
		},
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
		ready: c.WaitReady,
		promote: func(master *redistest.Server, kill func()) {
			replica := c.Replica(master)
			kill()
			c.WaitPromoted(replica)
		},
	}
}

const clusterSlots = 16384

// failsOver reports whether a replica takes the place of a silent master.
func (t *topology) failsOver() bool { return t.promote != nil }

// places returns the addresses of the masters, sorted.
func (t *topology) places() (addrs []string) {
	for _, m := range t.masters() {
		addrs = append(addrs, m.Addr())
	}
	slices.Sort(addrs)
	return addrs
}

// oneMaster returns a random master.
func (t *topology) oneMaster(random *rand.Rand) *redistest.Server {
	masters := t.masters()
	return masters[random.IntN(len(masters))]
}

// order sends a command to the given servers, without a proxy.
func order(servers []*redistest.Server, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range servers {
		if err := s.Client().Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("%v on %s: %w", args, s.Addr(), err)
		}
	}
	return nil
}
