package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Proxy stands between clients and a server, and applies a Fault to their requests. The bytes that it reads from a
// client at once, at most 64 KiB, count as one request: a command of go-redis, or a pipeline. The bytes that the server
// sends before the next request are the reply. Any goroutine may call the methods.
type Proxy struct {
	tb     testing.TB
	target string
	port   int

	struck atomic.Int64

	running sync.WaitGroup // everything that Close waits for

	mu       sync.Mutex
	ended    bool
	fault    Fault
	door     door
	listener *net.TCPListener // nil while the door is closed
	waiting  []net.Conn       // fill the queue while the door is full
	links    map[*link]bool
}

// StartProxy starts a proxy on a free port of 127.0.0.1 that connects its clients to the address target. It passes
// everything on until Set, and ends with the test. It connects to the target when a client sends its first request. If it
// cannot connect, it closes the client's connection.
func StartProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, target: target, links: map[*link]bool{}}
	if err := p.listen(); err != nil {
		tb.Fatalf("redistest: proxy: %v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// listen opens the door at a free port. It tries again if another process takes the port first.
func (p *Proxy) listen() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range attempts {
		p.port = reservePort(p.tb, false)
		if err = p.turn(open); err == nil {
			return nil
		}
	}
	return err
}

// Addr returns host and port. They stay the same for the life of the Proxy.
func (p *Proxy) Addr() string { return address(p.port) }

// Struck returns to how many requests a fault was applied.
func (p *Proxy) Struck() int { return int(p.struck.Load()) }

// Set replaces the fault by f, which acts on requests that arrive after Set has returned. Refuse and Unreachable also act
// on connections that are attempted after that. A connection that Swallow or BlackHole has struck stays mute. Set does
// nothing after Close.
func (p *Proxy) Set(f Fault) {
	p.tb.Helper()
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.fault = f
	err := p.turn(f.door())
	p.mu.Unlock()
	if err != nil {
		p.tb.Errorf("redistest: proxy %s: %v", p.Addr(), err)
	}
	if f.mode == refuse {
		p.hangUp()
	}
}

// Close ends all connections and returns when everything that the proxy started has ended. New connections are refused.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.ended = true
	_ = p.turn(closed) // cannot fail
	p.mu.Unlock()
	p.hangUp()
	p.running.Wait()
}

// turn opens, closes or blocks the door. It requires mu.
func (p *Proxy) turn(to door) error {
	if p.door == to {
		return nil
	}
	if p.listener != nil {
		shut(p.listener)
	}
	for _, conn := range p.waiting {
		_ = conn.Close()
	}
	p.door, p.listener, p.waiting = closed, nil, nil
	if to == closed {
		return nil
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.port})
	if err != nil {
		return err
	}
	p.door, p.listener = to, l
	if to == full {
		p.waiting, err = fill(l)
		return err
	}
	p.running.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l *net.TCPListener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // the door is closed, or file descriptors ran out: then the clients fail, too
		}
		p.admit(l, conn)
	}
}

// admit starts a link, unless the door of l has been closed.
func (p *Proxy) admit(l *net.TCPListener, conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l {
		_ = conn.Close()
		return
	}
	link := newLink(p, conn)
	p.links[link] = true
	p.running.Go(link.requests)
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// hangUp closes all connections.
func (p *Proxy) hangUp() {
	p.mu.Lock()
	var links []*link
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// judge returns the fault that strikes a request.
func (p *Proxy) judge(request []byte) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fault.concerns(request) {
		return Pass()
	}
	p.struck.Add(1)
	return p.fault
}
