package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A network is the way to Redis: a proxy that delays both directions, stalls, and refuses connections while it is cut.
type network struct {
	addr  string
	to    string
	delay atomic.Int64 // of one direction, in ns
	held  atomic.Int64 // until when nothing passes, in ns since 1970

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while it is cut
	open     map[net.Conn]struct{} // guarded by mu
}

func newNetwork(to string) (*network, error) {
	n := &network{addr: "127.0.0.1:0", to: to, open: make(map[net.Conn]struct{})}
	return n, n.connect(0)
}

// connect lets connections in. A round trip takes delay.
func (n *network) connect(delay time.Duration) error {
	n.delay.Store(int64(delay / 2))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		return err
	}
	n.listener, n.addr = l, l.Addr().String()
	go n.accept(l)
	return nil
}

// stall lets nothing pass for a time.
func (n *network) stall(lasts time.Duration) { n.held.Store(time.Now().Add(lasts).UnixNano()) }

// cut closes all connections, and refuses new ones.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != nil {
		_ = n.listener.Close()
		n.listener = nil
	}
	for conn := range n.open {
		_ = conn.Close()
	}
	clear(n.open)
}

func (n *network) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", n.to)
		if err != nil || !n.add(l, client, server) {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		go n.carry(client, server)
		go n.carry(server, client)
	}
}

// add remembers connections, unless the network was cut meanwhile.
func (n *network) add(l net.Listener, conns ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener != l {
		return false
	}
	for _, conn := range conns {
		n.open[conn] = struct{}{}
	}
	return true
}

// A chunk is read at once, and due later.
type chunk struct {
	bytes []byte
	due   time.Time
}

// carry sends each chunk after the delay, and in order.
func (n *network) carry(from io.Reader, to io.WriteCloser) {
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 4096)
			size, err := from.Read(buffer)
			if size > 0 {
				chunks <- chunk{buffer[:size], time.Now().Add(time.Duration(n.delay.Load()))}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		time.Sleep(time.Until(c.due))
		time.Sleep(time.Until(time.Unix(0, n.held.Load())))
		_, _ = to.Write(c.bytes) // the reader ends when its connection is closed
	}
	_ = to.Close()
}
