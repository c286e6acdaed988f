// Instances of a service, each with a limiter, a client and proxies of its own.

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const deadline = 50 * time.Millisecond // of the limiters: the default

// An instance has the limiter, client and connections of one process of a service.
type instance struct {
	limiter *shared.Limiter
	client  redis.UniversalClient
	proxies map[string]*redistest.Proxy // by the server's address
	conns   atomic.Int64                // open now
}

// newInstance returns an instance without a limiter. It has only the proxies
// between it and the servers.
func newInstance(owner *nottest.Owner, servers []*redistest.Server) *instance {
	in := &instance{proxies: map[string]*redistest.Proxy{}}
	for _, s := range servers {
		in.proxies[s.Addr()] = redistest.StartProxy(owner, s.Addr())
	}
	return in
}

// start makes the client and the limiter, one of that many instances.
func (in *instance) start(t *topology, instances int) (err error) {
	in.client = t.client(in.dial)
	in.limiter, err = shared.New(in.client, &shared.Options{
		Deadline: deadline, Instances: instances,
		Logger: slog.New(slog.DiscardHandler), // it would log every trouble
	})
	return err
}

// close closes the client and the limiter, and drops them, so that they do not
// count as heap.
func (in *instance) close() error {
	if in.limiter == nil {
		return nil
	}
	err := errors.Join(in.limiter.Close(), in.client.Close())
	in.limiter, in.client = nil, nil
	return err
}

// dial is go-redis's own dialer, except that it goes through a proxy and counts
// connections.
func (in *instance) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if p := in.proxies[addr]; p != nil {
		addr = p.Addr()
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	in.conns.Add(1)
	return &counted{TCPConn: conn.(*net.TCPConn), open: &in.conns}, nil
}

// A counted connection subtracts itself from open when it is closed.
type counted struct {
	*net.TCPConn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.TCPConn.Close()
}
