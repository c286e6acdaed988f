// Sites: servers behind proxies for every kind of client, and how replies get lost.

package shared

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A site is servers behind proxies, and the ways to them.
type site struct {
	servers []*redistest.Server
	proxies []*redistest.Proxy
	wire    wire
	client  func(*settings) redis.UniversalClient
	direct  []Client // that between them see all that is stored
}

// settings are the client's. A client that waits for a reply shorter than the
// limiter does would have time for another attempt.
type settings struct {
	name        string
	readTimeout time.Duration
}

var clientSettings = []*settings{{name: "default"}, {"impatient", tenantDeadline * 2 / 5}}

// tenantDeadline is a deadline that a busy Redis keeps, too.
var tenantDeadline = max(200*time.Millisecond, unhurried(defaultDeadline))

func newSite(t *testing.T, servers ...*redistest.Server) *site {
	t.Helper()
	s := &site{servers: servers}
	s.wire.via = make(map[string]string)
	for _, server := range servers {
		proxy := redistest.StartProxy(t, server.Addr())
		s.proxies = append(s.proxies, proxy)
		s.wire.via[server.Addr()] = proxy.Addr()
	}
	return s
}

// sites has one site for each kind of client.
var sites = map[string]func(*testing.T) *site{
	"Client": func(t *testing.T) *site {
		s := newSite(t, redistest.Start(t))
		s.client = func(o *settings) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: s.servers[0].Addr(), Dialer: s.wire.dial, ReadTimeout: o.readTimeout})
		}
		s.direct = []Client{s.servers[0].Client()}
		return s
	},
	"ClusterClient": func(t *testing.T) *site {
		cluster := redistest.StartCluster(t)
		s := newSite(t, cluster.Nodes()...)
		s.client = func(o *settings) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Dialer: s.wire.dial, ReadTimeout: o.readTimeout})
		}
		s.direct = []Client{cluster.Client()}
		return s
	},
	"FailoverClient": func(t *testing.T) *site {
		sentinel := redistest.StartSentinel(t)
		for _, one := range sentinel.Sentinels() { // a server that is stopped stays what it is
			set := []any{"SENTINEL", "SET", sentinel.MasterName(), "down-after-milliseconds", 60_000}
			if err := one.Client().Do(context.Background(), set...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := newSite(t, sentinel.Primary())
		s.client = func(o *settings) redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: sentinel.MasterName(), SentinelAddrs: sentinel.Addrs(), Dialer: s.wire.dial, ReadTimeout: o.readTimeout,
			})
		}
		s.direct = []Client{sentinel.Primary().Client()}
		return s
	},
}

// A loss is one way to lose the replies to executed commands.
type loss struct {
	name       string
	begin, end func(*site)
}

func losing(name string, f redistest.Fault) loss {
	return loss{name, func(s *site) { s.set(f) }, func(s *site) { s.set(redistest.Pass()) }}
}

var losses = []loss{
	losing("cut", redistest.Cut().Containing("evalsha")),
	losing("swallowed", redistest.Swallow().Containing("evalsha")),
	losing("late", redistest.Delay(tenantDeadline*8/5).Containing("evalsha")),
	{"cut, sent whole", func(s *site) {
		s.each(forgetScripts)
		s.set(redistest.Cut().Containing("$4\r\neval\r\n"))
	}, func(s *site) { s.set(redistest.Pass()) }},
	{"stopped", func(s *site) { s.each((*redistest.Server).Stop) }, func(s *site) {
		time.Sleep(time.Second)
		s.each((*redistest.Server).Continue)
	}},
}

func forgetScripts(s *redistest.Server) { _ = s.Client().ScriptFlush(context.Background()).Err() }

func (s *site) set(f redistest.Fault) {
	for _, p := range s.proxies {
		p.Set(f)
	}
}

func (s *site) each(f func(*redistest.Server)) {
	for _, server := range s.servers {
		f(server)
	}
}

// struck returns how many requests have met with a fault.
func (s *site) struck() (n int) {
	for _, p := range s.proxies {
		n += p.Struck()
	}
	return n
}
