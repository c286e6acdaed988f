// Instances of a service, each with a limiter, a client and proxies of its own.

package main

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	instances = 4
	deadline  = 50 * time.Millisecond // of the limiters: the default
)

// An instance has the limiter and the connections of one process of a service.
type instance struct {
	limiter *shared.Limiter
	proxies map[string]*redistest.Proxy // by the server's address
}

func newInstance(owner *nottest.Owner, t *topology) *instance {
	in := &instance{proxies: map[string]*redistest.Proxy{}}
	for _, s := range t.servers {
		in.proxies[s.Addr()] = redistest.StartProxy(owner, s.Addr())
	}
	client := t.client(in.dial)
	owner.Cleanup(func() { _ = client.Close() })
	in.limiter = nottest.Must(shared.New(client, &shared.Options{
		Deadline: deadline, Instances: instances,
		Logger: slog.New(slog.DiscardHandler), // it would log every trouble
	}))
	owner.Cleanup(func() { _ = in.limiter.Close() })
	return in
}

// dial is go-redis's own dialer, except that it goes through a proxy.
func (in *instance) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p := in.proxies[addr]; p != nil {
		addr = p.Addr()
	}
	return (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
}
