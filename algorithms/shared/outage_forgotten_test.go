// A network that forgets connections, as a NAT or a mesh that restarts does.

package shared

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A forgettingNetwork can forget the connections that there are. Then neither end
// notices: what the client writes is lost.
type forgettingNetwork struct {
	mu    sync.Mutex
	conns []*forgottenConn
}

type forgottenConn struct {
	net.Conn
	forgotten atomic.Bool
}

func (c *forgottenConn) Write(b []byte) (int, error) {
	if c.forgotten.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (n *forgettingNetwork) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &forgottenConn{Conn: conn}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return c, nil
}

// forget forgets all connections, and returns how many there were.
func (n *forgettingNetwork) forget() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.forgotten.Store(true)
	}
	return len(n.conns)
}

// Redis decides again over new connections, whether calls come one after the other or
// in crowds. No call fails, and no unit is charged twice.
func TestForgottenConnections(t *testing.T) {
	t.Parallel()
	for name, callers := range map[string]int{"one caller": 1, "a crowd": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var network forgettingNetwork
			client := clientOf(t, redistest.Start(t).Addr(), func(o *redis.Options) { o.Dialer = network.dial })
			var conns []*redis.Conn
			for range 10 {
				conn := client.Conn()
				if err := conn.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				conns = append(conns, conn)
			}
			for _, conn := range conns {
				_ = conn.Close() // gives it back to the pool
			}
			l := must(t, client, nil)
			redistest.Until(t, "Redis decides", func() bool { return take(t, l, "usr=1", ample, 1).Source == algorithms.Shared })
			n, began := network.forget(), time.Now()
			var byRedis atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range 100 {
						if take(t, l, "usr=1", ample, 1).Source == algorithms.Shared {
							byRedis.Add(1)
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			redistest.Until(t, "Redis decides over new connections", func() bool {
				return take(t, l, "usr=1", ample, 1).Source == algorithms.Shared
			})
			t.Logf("%d connections were forgotten: Redis decides again after %v", n, time.Since(began).Round(time.Millisecond))
			wg.Wait()
		})
	}
}
