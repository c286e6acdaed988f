// The world of the tests of outages: a real Redis, the ways in which it can fail
// to answer, and callers who go on asking.

package shared

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// unhurried stretches a time that a test does not measure: the race detector
// slows everything down.
func unhurried(d time.Duration) time.Duration {
	if raceEnabled {
		return 5 * d
	}
	return d
}

// A wire is how clients reach servers: through proxies, where there are any. It
// counts connections, and otherwise does what go-redis does by itself.
type wire struct {
	via                 map[string]string // by the server's address
	dials, failed, live atomic.Int64
}

var dial = redis.NewDialer(&redis.Options{DialTimeout: 5 * time.Second}) // its default

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxy, ok := w.via[addr]; ok {
		addr = proxy
	}
	w.dials.Add(1)
	conn, err := dial(ctx, network, addr)
	if err != nil {
		w.failed.Add(1)
		return nil, err
	}
	w.live.Add(1)
	return &wiredConn{TCPConn: conn.(*net.TCPConn), wire: w}, nil
}

// A wiredConn stays a TCPConn, because go-redis asks more of a TCPConn than of
// other connections.
type wiredConn struct {
	*net.TCPConn
	wire  *wire
	close sync.Once
}

func (c *wiredConn) Close() error {
	c.close.Do(func() { c.wire.live.Add(-1) })
	return c.TCPConn.Close()
}

// A target is a Redis that can fail to answer, and its one client.
type target struct {
	t      *testing.T
	server *redistest.Server
	proxy  *redistest.Proxy // nil if the client goes straight to the server
	wire   wire
	client *redis.Client
	held   []interface{ Close() error }
}

// An outageCause is one way for Redis not to answer.
type outageCause struct {
	name       string
	proxied    bool
	begin, end func(*target)
}

// byProxy is an outage that the network causes.
func byProxy(name string, f redistest.Fault) outageCause {
	return outageCause{name, true, func(p *target) { p.proxy.Set(f) }, func(p *target) { p.proxy.Set(redistest.Pass()) }}
}

// byServer is an outage that the server causes.
func byServer(name string, begin, end func(*redistest.Server)) outageCause {
	return outageCause{name, false, func(p *target) { begin(p.server) }, func(p *target) { end(p.server) }}
}

var outageCauses = []outageCause{
	byProxy("refused", redistest.Refuse()),
	byServer("killed", (*redistest.Server).Kill, (*redistest.Server).Restart),
	byProxy("unreachable", redistest.Unreachable()),
	byProxy("black hole", redistest.BlackHole()),
	byServer("stopped", (*redistest.Server).Stop, (*redistest.Server).Continue),
	byProxy("trickling", redistest.Trickle(1)),
	byServer("busy", (*redistest.Server).StartScript, (*redistest.Server).KillScript),
	{"no connection free", false, (*target).takeAll, (*target).release},
	byServer("loading", (*redistest.Server).RestartLoading, (*redistest.Server).FinishLoading),
	{"too many clients", false, (*target).crowd, (*target).release},
}

// newTarget starts a server that answers, and a client with go-redis's default
// options, except for the options that tune changes. args are the server's.
func newTarget(t *testing.T, cause outageCause, tune func(*redis.Options), args ...string) *target {
	t.Helper()
	p := &target{t: t, server: redistest.Start(t, args...)}
	if cause.proxied {
		p.proxy = redistest.StartProxy(t, p.server.Addr())
		p.wire.via = map[string]string{p.server.Addr(): p.proxy.Addr()}
	}
	o := &redis.Options{Addr: p.server.Addr(), Dialer: p.wire.dial}
	if tune != nil {
		tune(o)
	}
	p.client = redis.NewClient(o)
	t.Cleanup(func() { _ = p.client.Close() })
	return p
}

// takeAll holds all connections that the client may have.
func (p *target) takeAll() {
	for range p.client.Options().PoolSize {
		conn := p.client.Conn()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			p.t.Errorf("holding a connection: %v", err)
		}
		p.held = append(p.held, conn)
	}
}

// crowd takes the only place that it leaves for clients, and drops all others.
func (p *target) crowd() {
	conn, err := net.Dial("tcp", p.server.Addr())
	if err != nil {
		p.t.Fatal(err)
	}
	p.held = append(p.held, &crowding{conn})
	for _, line := range []string{"CONFIG SET maxclients 1", "CLIENT KILL TYPE normal SKIPME yes"} {
		if reply := say(p.t, conn, line); strings.HasPrefix(reply, "-") {
			p.t.Fatalf("%s: %s", line, reply)
		}
	}
}

// crowding leaves places for others when it closes.
type crowding struct{ net.Conn }

func (c *crowding) Close() error {
	_, err := c.Write([]byte("CONFIG SET maxclients 10000\r\n"))
	if err == nil {
		_, err = c.Read(make([]byte, 64))
	}
	if err != nil {
		return err
	}
	return c.Conn.Close()
}

func say(t *testing.T, conn net.Conn, line string) string {
	t.Helper()
	reply := make([]byte, 256)
	if _, err := conn.Write([]byte(line + "\r\n")); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	n, err := conn.Read(reply)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(reply[:n])
}

func (p *target) release() {
	for _, h := range p.held {
		if err := h.Close(); err != nil {
			p.t.Error(err)
		}
	}
	p.held = nil
}

// A sample is one call of one caller.
type sample struct {
	took time.Duration
	open bool // whether the circuit was when it began
}

// callers ask a Limiter again and again until they are dismissed. No error ever
// reaches them.
type callers struct {
	t             *testing.T
	limiter       *Limiter
	stop          chan struct{}
	wg            sync.WaitGroup
	began, shared atomic.Int64
	dismiss       func()       // waits for the last calls
	calls         sync.RWMutex // while it is locked, no caller calls
}

// ample is never spent.
var ample = algorithms.FixedWindow(1_000_000_000, 24*time.Hour)

// startCallers lets n callers ask, and passes each call to seen, unless that is
// nil.
func startCallers(t *testing.T, s *Limiter, n int, every time.Duration, seen func(sample)) *callers {
	c := &callers{t: t, limiter: s, stop: make(chan struct{})}
	c.dismiss = sync.OnceFunc(func() {
		close(c.stop)
		c.wg.Wait()
	})
	t.Cleanup(c.dismiss)
	for _, key := range manyKeys(n) {
		c.wg.Go(func() { c.ask(key, every, seen) })
	}
	return c
}

func (c *callers) ask(key string, every time.Duration, seen func(sample)) {
	pause := time.NewTicker(every)
	defer pause.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-pause.C:
		}
		c.calls.RLock()
		open, began := c.limiter.Stats().Fallback.Open > 0, time.Now()
		c.began.Add(1)
		d, err := algorithms.Allow(context.Background(), c.limiter, key, ample)
		took := time.Since(began)
		c.calls.RUnlock()
		if err != nil || !d.Allowed || d.Source == algorithms.Undecided {
			c.t.Errorf("%s: got %+v, %v, want it to be allowed", key, d, err)
		}
		if d.Source == algorithms.Shared {
			c.shared.Add(1)
		}
		if seen != nil {
			seen(sample{took, open})
		}
	}
}

func (c *callers) awaitOpen() {
	c.t.Helper()
	redistest.Until(c.t, "the circuit is open", func() bool { return c.limiter.Stats().Fallback.Open > 0 })
}

// awaitShared waits until Redis decides another call.
func (c *callers) awaitShared() {
	c.t.Helper()
	before := c.shared.Load()
	redistest.Until(c.t, "Redis decides", func() bool { return c.shared.Load() > before })
}
