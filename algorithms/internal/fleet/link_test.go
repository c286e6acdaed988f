// The network between an instance and Redis, and the troubles of both.

package fleet

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A trouble is what keeps an instance from using Redis.
type trouble string

const (
	none    trouble = ""
	refused trouble = "refused" // the port is closed, and connections are cut
	dark    trouble = "dark"    // packets wait: those of new connections, too
	stalled trouble = "stalled" // connections open, and commands wait
	mute    trouble = "mute"    // commands are executed, and replies are lost
	cut     trouble = "cut"     // commands are executed, and connections are cut before the reply
	slow    trouble = "slow"    // each command takes longer than a deadline
)

var troubles = []trouble{refused, dark, stalled, mute, cut, slow}

// A link is an instance's way to the server.
type link struct {
	server  *server
	latency time.Duration // of a round trip

	mu      sync.Mutex // guards the fields below
	random  *rand.Rand
	trouble trouble
	over    chan struct{} // closed when the trouble is over
	conns   map[*conn]bool
	gone    bool // the instance is dead
}

// A conn is a connection, seen from the server.
type conn struct {
	net.Conn
	mute   bool
	closed atomic.Bool
}

func (c *conn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// A clientConn is a connection, seen from the client. Before the client uses an idle
// connection, it asks the system whether the server has closed it.
type clientConn struct {
	net.Conn
	end *conn
}

// SyscallConn implements [syscall.Conn].
func (c clientConn) SyscallConn() (syscall.RawConn, error) {
	if c.end.closed.Load() {
		return nil, io.EOF
	}
	return idle{}, nil
}

// Idle is a socket that has nothing to read.
type idle struct{}

func (idle) Control(func(uintptr)) error    { return nil }
func (idle) Read(func(uintptr) bool) error  { return nil }
func (idle) Write(func(uintptr) bool) error { return nil }

func newLink(s *server, latency time.Duration, random *rand.Rand) *link {
	over := make(chan struct{})
	close(over)
	return &link{server: s, latency: latency, random: random, over: over, conns: make(map[*conn]bool)}
}

// meets begins a trouble, or ends all trouble.
func (l *link) meets(t trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	if l.trouble != none {
		close(l.over)
	}
	if l.trouble = t; t != none {
		l.over = make(chan struct{})
	}
	if t == refused {
		l.cutAll()
	}
}

// dies cuts the instance off for ever.
func (l *link) dies() {
	l.meets(refused)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}

func (l *link) cutAll() {
	for c := range l.conns {
		_ = c.Close()
	}
	clear(l.conns)
}

func (l *link) now() (t trouble, over chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble, l.over
}

// dial opens a connection.
func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	for {
		switch t, over := l.now(); t {
		case refused:
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		case dark:
			select {
			case <-over:
				continue
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
			}
		}
		break
	}
	client, end := net.Pipe()
	c := &conn{Conn: end}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	go l.serve(c)
	return clientConn{client, c}, nil
}

// serve executes the commands of a connection until either side closes it. A
// command that has arrived is executed, also if the client closes the connection
// before that.
func (l *link) serve(c *conn) {
	defer func() {
		_ = c.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
	}()
	commands := bufio.NewReaderSize(c, 64<<10)
	for {
		args, err := readCommand(commands)
		if err != nil {
			return
		}
		l.travel()
		if l.waits(c) {
			return
		}
		reply := l.server.execute(args)
		if l.loses(c) {
			return
		}
		l.travel()
		if c.mute {
			continue
		}
		if t, over := l.now(); t == dark {
			<-over
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// travel takes half of a round trip.
func (l *link) travel() {
	l.mu.Lock()
	d := l.latency/4 + time.Duration(l.random.Int64N(int64(l.latency/2)))
	if l.trouble == slow {
		d += 30*time.Millisecond + time.Duration(l.random.Int64N(int64(120*time.Millisecond)))
	}
	l.mu.Unlock()
	time.Sleep(d)
}

// waits waits while commands are not executed. It reports whether the connection
// has been cut meanwhile: then the command is lost.
func (l *link) waits(c *conn) (lost bool) {
	for {
		t, over := l.now()
		if t != dark && t != stalled {
			break
		}
		<-over
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.conns[c]
}

// loses loses the reply to a command, if there is trouble. It reports whether it has cut
// the connection.
func (l *link) loses(c *conn) bool {
	switch t, _ := l.now(); t {
	case mute:
		c.mute = true
	case cut:
		return true
	}
	return false
}
