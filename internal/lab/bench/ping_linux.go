// The PINGs that measure a proxy. One thread sends them, so that the scheduler of
// goroutines does not add to their times. Like the proxy, it has a higher priority
// than other work on the machine.

package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A pinger is a connection that sends PINGs, one after the other.
type pinger struct {
	fd   int
	next time.Duration // when to send the next PING
	sent time.Duration // when the present PING was sent; 0: none is under way
}

// ping sends PINGs for the given time, over that many connections.
func ping(ctx context.Context, addr string, connections int, lasts time.Duration) (got pings, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // without unlock: the thread ends, and so does its priority
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
		got, err = pingOn(ctx, addr, connections, lasts)
	}()
	<-done
	return got, err
}

func pingOn(ctx context.Context, addr string, connections int, lasts time.Duration) (pings, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return pings{}, err
	}
	defer unix.Close(epoll)
	pingers := make([]pinger, connections)
	for i := range pingers {
		p := &pingers[i]
		p.next = time.Duration(i+1) * pingEvery
		if p.fd, err = connect(addr); err != nil {
			return pings{}, err
		}
		defer unix.Close(p.fd)
		err := errors.Join(p.send(), p.receive(), // after a reply, the server has accepted
			unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, p.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}))
		if err != nil {
			return pings{}, err
		}
	}
	took, err := pingAll(ctx, epoll, pingers, lasts)
	if err != nil {
		return pings{}, err
	}
	slices.Sort(took)
	return pings{
		connections: connections,
		count:       len(took),
		perSecond:   float64(len(took)) / lasts.Seconds(),
		median:      took[len(took)/2],
		p99:         took[len(took)*99/100],
	}, nil
}

func pingAll(ctx context.Context, epoll int, pingers []pinger, lasts time.Duration) (took []time.Duration, err error) {
	var events [256]unix.EpollEvent
	ready := []unix.PollFd{{Fd: int32(epoll), Events: unix.POLLIN}}
	begin := time.Now()
	for now := time.Duration(0); now < lasts || len(took) == 0; now = time.Since(begin) {
		next := now + time.Second
		for i := range pingers {
			p := &pingers[i]
			if p.sent == 0 && p.next <= now {
				p.sent = time.Since(begin)
				if err := p.send(); err != nil {
					return nil, err
				}
			}
			if p.sent == 0 {
				next = min(next, p.next)
			}
		}
		wait := unix.NsecToTimespec(max(0, next-time.Since(begin)).Nanoseconds())
		if _, err := unix.Ppoll(ready, &wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		n, err := unix.EpollWait(epoll, events[:], 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		for _, e := range events[:max(n, 0)] {
			p := &pingers[e.Fd]
			if err := p.receive(); err != nil {
				return nil, err
			}
			now := time.Since(begin)
			took = append(took, now-p.sent)
			p.next = max(now, p.next+time.Duration(len(pingers))*pingEvery)
			p.sent = 0
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return took, nil
}

// connect returns a connection to a server.
func connect(addr string) (fd int, err error) {
	to, err := socketAddr(addr)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	return fd, errors.Join(unix.Connect(fd, to), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
}

func (p *pinger) send() error {
	_, err := unix.Write(p.fd, []byte("PING\r\n"))
	return err
}

func (p *pinger) receive() error {
	var pong [16]byte
	n, err := unix.Read(p.fd, pong[:])
	if n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}
