package redistest

import (
	"context"
	"net"
	"sync"
	"time"
)

const requestBytes = 64 << 10

// A link is one connection of a client through a Proxy. One goroutine handles its requests, another one the replies.
type link struct {
	proxy  *Proxy
	client net.Conn
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
	mute   bool // a request has vanished; only the goroutine of requests uses it

	mu     sync.Mutex
	server net.Conn  // nil before the first request
	fault  Fault     // of the latest forwarded request
	asked  time.Time // when that request was forwarded
}

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// close ends both connections and so both goroutines. The link may be closed already.
func (l *link) close() {
	l.mu.Lock()
	l.cancel()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
	l.mu.Unlock()
	l.proxy.forget(l)
}

// requests forwards what the client sends, until either side hangs up.
func (l *link) requests() {
	defer l.close()
	buffer := make([]byte, requestBytes)
	for {
		n, err := l.client.Read(buffer)
		if err != nil || !l.forward(buffer[:n]) {
			return
		}
	}
}

// forward applies the fault of the proxy to a request, and sends it to the server unless the fault prevents that. It
// reports whether the link lives on.
func (l *link) forward(request []byte) bool {
	f := l.proxy.judge(request)
	if f.mode == delayRequests && !pause(l.ctx.Done(), time.Now().Add(f.delay)) {
		return false
	}
	if f.mode == blackHole || f.mode == unreachable {
		l.mute = true
	}
	if l.mute {
		return true // keep reading, to notice when the client hangs up
	}
	server, err := l.dial()
	if err != nil {
		return false
	}
	l.expect(f)
	_, err = server.Write(request)
	return err == nil
}

// dial connects to the target, once.
func (l *link) dial() (net.Conn, error) {
	if l.server != nil { // only this goroutine writes it
		return l.server, nil
	}
	server, err := (&net.Dialer{Timeout: deadline}).DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ctx.Err(); err != nil {
		_ = server.Close()
		return nil, err
	}
	l.server = server
	l.proxy.running.Go(func() { l.replies(server) })
	return server, nil
}

// expect sets the fault for the reply to the request that is about to be forwarded. Swallow and Cut stay in force, so that
// a lost reply remains lost when another request follows.
func (l *link) expect(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault.mode != swallow && l.fault.mode != cut {
		l.fault, l.asked = f, time.Now()
	}
}

func (l *link) expected() (Fault, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.asked
}

// replies delivers the replies of the server, until either side hangs up.
func (l *link) replies(server net.Conn) {
	defer l.close()
	buffer := make([]byte, requestBytes)
	for {
		n, err := server.Read(buffer)
		if err != nil || !l.deliver(buffer[:n]) {
			return
		}
	}
}

// deliver gives a reply to the client, unless the fault prevents that. It reports whether the link lives on.
func (l *link) deliver(reply []byte) bool {
	f, asked := l.expected()
	switch f.mode {
	case swallow:
		return true
	case cut:
		return false
	case delay:
		if !pause(l.ctx.Done(), asked.Add(f.delay)) {
			return false
		}
	case trickle:
		return l.trickle(reply, f.rate)
	}
	_, err := l.client.Write(reply)
	return err == nil
}

func (l *link) trickle(reply []byte, rate int) bool {
	begin := time.Now()
	for i := range reply {
		if !pause(l.ctx.Done(), begin.Add(time.Duration(i+1)*time.Second/time.Duration(rate))) {
			return false
		}
		if _, err := l.client.Write(reply[i : i+1]); err != nil {
			return false
		}
	}
	return true
}

// pause waits until the instant, and reports false if done came first.
func pause(done <-chan struct{}, until time.Time) bool {
	select {
	case <-time.After(time.Until(until)):
		return true
	case <-done:
		return false
	}
}
