package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	sentinels  = 3
	quorum     = 2
	masterName = "penstock"
)

// A Sentinel is a primary, a replica, and three sentinels who watch them. Two of the sentinels suffice to promote the
// replica, which they do when the primary has been silent for 1 s. A primary that comes back becomes a replica.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server
	sentinels []*Server
	client    func() *redis.Client
}

// StartSentinel starts a primary and its replica, gives both the extra arguments of redis-server, starts three
// sentinels, and returns when WaitReady would.
func StartSentinel(tb testing.TB, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb}
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	primary := Start(tb, args...)
	replica := Start(tb, append([]string{"--replicaof", "127.0.0.1", fmt.Sprint(primary.port)}, args...)...)
	s.servers = []*Server{primary, replica}
	// Sentinels ask a primary for its replicas when they first see it, and then every 10 s.
	Until(tb, fmt.Sprintf("%s follows %s", replica.Addr(), primary.Addr()), func() bool {
		return strings.Contains(replica.replication(), "master_link_status:up")
	})
	for range sentinels {
		s.sentinels = append(s.sentinels, startSentinel(tb, primary))
	}
	s.client = sync.OnceValue(func() *redis.Client {
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: masterName, SentinelAddrs: s.Addrs()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	s.WaitReady()
	return s
}

// startSentinel starts one sentinel. It keeps what it learns in its configuration file, which must be there.
func startSentinel(tb testing.TB, primary *Server) *Server {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "sentinel.conf")
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", masterName, primary.port, quorum),
		"sentinel down-after-milliseconds " + masterName + " 1000",
		"sentinel failover-timeout " + masterName + " 2000",
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return start(tb, kind{args: []string{file, "--sentinel"}}, nil)
}

// MasterName returns the name by which the sentinels know the primary.
func (s *Sentinel) MasterName() string { return masterName }

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string {
	var addrs []string
	for _, sentinel := range s.sentinels {
		addrs = append(addrs, sentinel.Addr())
	}
	return addrs
}

// Sentinels returns the three sentinels.
func (s *Sentinel) Sentinels() []*Server { return s.sentinels }

// Servers returns the two servers that hold data: first the original primary.
func (s *Sentinel) Servers() []*Server { return s.servers }

// Client returns a failover client with go-redis's default options. All calls return the same one, and the end of the
// test closes it.
func (s *Sentinel) Client() *redis.Client { return s.client() }

// Primary returns the server that the first sentinel that answers names, be it alive or not.
func (s *Sentinel) Primary() *Server {
	s.tb.Helper()
	for _, sentinel := range s.sentinels {
		addr := s.named(sentinel)
		for _, server := range s.servers {
			if server.Addr() == addr {
				return server
			}
		}
	}
	s.tb.Fatalf("redistest: no sentinel answers")
	return nil
}

// Replica returns the server that is not the primary.
func (s *Sentinel) Replica() *Server {
	s.tb.Helper()
	if s.Primary() == s.servers[0] {
		return s.servers[1]
	}
	return s.servers[0]
}

// WaitReady waits until every sentinel sees a primary, its replica in step with it, and both other sentinels, all of
// them well. It fails the test after [Patience]. Call it after the restart of any of the processes.
func (s *Sentinel) WaitReady() {
	s.tb.Helper()
	UntilEmpty(s.tb, "the sentinels are ready", s.state)
}

// WaitPromoted waits until the server takes writes and every sentinel that answers names it, at least two of them. It
// fails the test after [Patience].
func (s *Sentinel) WaitPromoted(replica *Server) {
	s.tb.Helper()
	Until(s.tb, replica.Addr()+" is promoted", func() bool {
		names := map[string]int{}
		for _, sentinel := range s.sentinels {
			names[s.named(sentinel)]++
		}
		delete(names, "")
		return len(names) == 1 && names[replica.Addr()] >= quorum && strings.Contains(replica.replication(), "role:master")
	})
}

// named returns the address of the primary in the eyes of one sentinel, or "" if it does not answer.
func (s *Sentinel) named(sentinel *Server) string {
	client := redis.NewSentinelClient(sentinel.quiet())
	defer client.Close()
	return strings.Join(client.GetMasterAddrByName(s.tb.Context(), masterName).Val(), ":")
}

// state returns what the first sentinel that is not ready misses, or "".
func (s *Sentinel) state() string {
	for _, sentinel := range s.sentinels {
		if missing := s.view(sentinel); missing != "" {
			return sentinel.Addr() + ": " + missing
		}
	}
	return ""
}

func (s *Sentinel) view(sentinel *Server) string {
	client := redis.NewSentinelClient(sentinel.quiet())
	defer client.Close()
	hurry(s.tb, client)
	ctx := s.tb.Context()
	if primary := client.Master(ctx, masterName).Val(); primary["flags"] != "master" {
		return fmt.Sprintf("primary is %v", primary)
	}
	replicas := client.Replicas(ctx, masterName).Val()
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Sprintf("replicas are %v", replicas)
	}
	peers := client.Sentinels(ctx, masterName).Val()
	if len(peers) != sentinels-1 {
		return fmt.Sprintf("other sentinels are %v", peers)
	}
	for _, peer := range peers {
		// Valkey 9.1 adds "master_down", for the down primary that the peer has seen last.
		if flags := peer["flags"]; flags != "sentinel" && flags != "sentinel,master_down" {
			return fmt.Sprintf("another sentinel is %v", peer)
		}
	}
	return ""
}

// hurry makes a sentinel look around more often than by default, which it forgets when it is restarted. By default it
// first pings a new primary after 1 s, and so may promote the next one at once. With more than one ping in 200 ms it
// would consider what a replica says about itself outdated before it asks again. Sentinels before Redis 7 cannot hurry.
func hurry(tb testing.TB, client *redis.SentinelClient) {
	_ = client.Process(tb.Context(), redis.NewCmd(tb.Context(), "SENTINEL", "DEBUG",
		"ping-period", 300, "info-period", 1000, "publish-period", 200, "ask-period", 100))
}
