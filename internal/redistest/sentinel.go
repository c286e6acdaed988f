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

// A Sentinel is a primary, a replica, and three sentinels that watch them. The sentinels promote the replica when two of
// them have had no answer from the primary for 1 s. A primary that comes back becomes a replica.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server // with data: first the original primary, then the original replica
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
		s.sentinels = append(s.sentinels, startSentinel(tb, primary.port))
	}
	s.client = sync.OnceValue(func() *redis.Client {
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: masterName, SentinelAddrs: s.Addrs()})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	})
	s.WaitReady()
	return s
}

// startSentinel starts one sentinel, with extra arguments. A sentinel needs a configuration file, in which it also stores
// its state.
func startSentinel(tb testing.TB, primaryPort int, args ...string) *Server {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "sentinel.conf")
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", masterName, primaryPort, quorum),
		"sentinel down-after-milliseconds " + masterName + " 1000",
		"sentinel failover-timeout " + masterName + " 2000",
	}
	must(tb, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return start(tb, kind{args: []string{file, "--sentinel"}}, args)
}

// MasterName returns the name by which the sentinels know the primary.
func (s *Sentinel) MasterName() string { return masterName }

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string { return addrsOf(s.sentinels) }

// Sentinels returns the three sentinels.
func (s *Sentinel) Sentinels() []*Server { return s.sentinels }

// Client returns a failover client with go-redis's default options. All calls return the same one, and the end of the
// test closes it.
func (s *Sentinel) Client() *redis.Client { return s.client() }

// Primary returns the primary according to the first sentinel that answers. It may be dead.
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

// WaitReady waits until every sentinel sees a healthy primary, a replica that is connected to it, and both other
// sentinels. It fails the test after [Patience]. Call it after the restart of any of the processes.
func (s *Sentinel) WaitReady() {
	s.tb.Helper()
	UntilEmpty(s.tb, "the sentinels are ready", s.state)
}

// WaitPromoted waits until the server takes writes, at least two sentinels name it, and no sentinel names another server.
// It fails the test after [Patience].
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

// named returns the address of the primary according to one sentinel, or "" if that sentinel does not answer.
func (s *Sentinel) named(sentinel *Server) string {
	addr, _ := sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
	return strings.Join(addr, ":")
}

// state returns what the first sentinel that is not ready lacks, or "".
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
	sentinel.hurry()
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
		// Valkey 9.1 adds "master_down" while the peer still remembers a dead primary.
		if flags := peer["flags"]; flags != "sentinel" && flags != "sentinel,master_down" {
			return fmt.Sprintf("another sentinel is %v", peer)
		}
	}
	return ""
}

// hurry makes a sentinel check its servers more often, until the sentinel restarts. By default it first pings a new primary
// after 1 s, and may therefore consider it dead at once. A ping period below 200 ms would be too short: the INFO of a
// replica is outdated after five of them, and the sentinel asks for INFO every second. Redis 6.2 ignores the command.
func (s *Server) hurry() {
	s.ask("SENTINEL", "DEBUG", "ping-period", 300, "info-period", 1000, "publish-period", 200, "ask-period", 100)
}
