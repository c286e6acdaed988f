// The event loop of the proxy: one thread that waits in epoll for bytes, or until a
// chunk is due. Goroutines would not do: they wake up to a millisecond late, and each of
// their system calls needs a processor of the runtime. With two goroutines for each
// direction, the median PING took 2.4 ms where this loop took 0.8 (on a busy machine), for
// twice to six times the processor time. Callers and Redis lack the processor time
// that the proxy takes, and a real network takes none. So the proxy must be cheap.
//
// Bytes that arrive at one end of a connection become a chunk, which is due at the
// other end after the delay. The delay is the same for all, so chunks are due in the
// order in which they arrive.

package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A relay carries bytes between clients and one server, and delays them.
type relay struct {
	epoll, listener, control int

	server  unix.Sockaddr
	delay   time.Duration // of each direction
	begin   time.Time
	ends    []*end  // by descriptor
	waiting []chunk // in the order in which they are due
	spare   [][]byte
	events  [256]unix.EpollEvent
	buffer  [64 << 10]byte
}

// An end is one of the two sockets of a carried connection.
type end struct {
	fd      int
	peer    *end
	backlog []byte // bytes that are due and did not fit into the socket's buffer
	closed  bool
}

// A chunk has bytes on their way to an end. A chunk without bytes closes the connection.
type chunk struct {
	to    *end
	due   time.Duration
	bytes []byte
}

// serveRelay serves until control ends. It writes its address as a line to out.
// control is the descriptor of a pipe, from which serveRelay reads the delay of each
// direction in nanoseconds.
func serveRelay(server string, control int, out io.Writer) error {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns: otherwise it wakes up to 50 µs late
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)    // a real network does not wait for this machine's processors
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 << 20)
	r := &relay{control: control, begin: time.Now()}
	addr, err := r.open(server)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, addr)
	for {
		r.sendDue()
		n, err := r.wait()
		if err != nil {
			return err
		}
		for _, e := range r.events[:n] {
			if err := r.handle(int(e.Fd), e.Events); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
}

// open listens on a free port of the loopback address, and returns it.
func (r *relay) open(server string) (string, error) {
	addr, err := netip.ParseAddrPort(server)
	if err != nil {
		return "", err
	}
	r.server = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	var errs [4]error
	r.epoll, errs[0] = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	r.listener, errs[1] = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	errs[2] = unix.Bind(r.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	errs[3] = unix.Listen(r.listener, 4096)
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	if err := errors.Join(r.watch(r.listener, unix.EPOLLIN), r.watch(r.control, unix.EPOLLIN)); err != nil {
		return "", err
	}
	name, err := unix.Getsockname(r.listener)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), nil
}

func (r *relay) watch(fd int, events uint32) error {
	return unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (r *relay) now() time.Duration { return time.Since(r.begin) }

// handle handles one event. It returns io.EOF when control has ended.
func (r *relay) handle(fd int, events uint32) error {
	switch fd {
	case r.control:
		return r.obey()
	case r.listener:
		return r.accept()
	}
	if e := r.ends[fd]; e != nil {
		if events&unix.EPOLLOUT != 0 {
			r.flush(e)
		}
		if events&^unix.EPOLLOUT != 0 {
			r.read(e, events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0)
		}
	}
	return nil
}

// obey reads a new delay from control.
func (r *relay) obey() error {
	n, err := unix.Read(r.control, r.buffer[:])
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	_, err = fmt.Sscan(string(r.buffer[:n]), (*int64)(&r.delay))
	return err
}

// accept connects a client with the server. Connecting is not delayed.
func (r *relay) accept() error {
	client, _, err := unix.Accept4(r.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return nil // the client has gone
	}
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(server, r.server); err != nil {
		return errors.Join(unix.Close(client), unix.Close(server))
	}
	a, b := &end{fd: client}, &end{fd: server}
	a.peer, b.peer = b, a
	var errs []error
	for _, e := range []*end{a, b} {
		for len(r.ends) <= e.fd {
			r.ends = append(r.ends, nil)
		}
		r.ends[e.fd] = e
		errs = append(errs,
			unix.SetNonblock(e.fd, true),
			unix.SetsockoptInt(e.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			r.watch(e.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET))
	}
	return errors.Join(errs...)
}

// read reads the bytes that arrived at one end. A read that does not fill the buffer
// has emptied the socket; see epoll(7) on edge-triggered events. If the other side
// has hung up, read goes on to the end of the stream.
func (r *relay) read(e *end, hungUp bool) {
	for !e.closed {
		n, err := unix.Read(e.fd, r.buffer[:])
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			return
		case n <= 0:
			r.queue(e.peer, nil)
			return
		}
		r.queue(e.peer, r.buffer[:n])
		if n < len(r.buffer) && !hungUp {
			return
		}
	}
}

// queue delays bytes.
func (r *relay) queue(to *end, bytes []byte) {
	var room []byte
	if n := len(r.spare); n > 0 {
		room, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	r.waiting = append(r.waiting, chunk{to, r.now() + r.delay, append(room[:0], bytes...)})
}

// grain is how much too early a chunk may go, so that chunks that are due at nearly
// the same time share a wake-up.
const grain = 20 * time.Microsecond

// sendDue sends all chunks whose time has come.
func (r *relay) sendDue() {
	now, sent := r.now()+grain, 0
	for _, c := range r.waiting {
		if c.due > now {
			break
		}
		sent++
		switch {
		case c.to.closed:
		case len(c.bytes) == 0:
			r.shut(c.to)
		default:
			c.to.backlog = append(c.to.backlog, c.bytes...)
			r.flush(c.to)
		}
		r.spare = append(r.spare, c.bytes)
	}
	r.waiting = slices.Delete(r.waiting, 0, sent)
}

// flush writes as much of the backlog as the socket takes. Epoll reports when the
// socket takes more.
func (r *relay) flush(e *end) {
	for len(e.backlog) > 0 && !e.closed {
		n, err := unix.Write(e.fd, e.backlog)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil:
			r.shut(e)
			return
		}
		e.backlog = e.backlog[:copy(e.backlog, e.backlog[max(n, 0):])]
	}
}

// shut closes both ends of a connection.
func (r *relay) shut(e *end) {
	for _, e := range []*end{e, e.peer} {
		if !e.closed {
			e.closed = true
			r.ends[e.fd] = nil
			_ = unix.Close(e.fd)
		}
	}
}

// wait waits for events, or until the next chunk is due, and returns how many events
// there are. The runtime does not learn of this system call. Otherwise, each time, it
// would wake a thread that takes the processor away, and find one afterwards: that cost
// two fifths of the proxy's time.
func (r *relay) wait() (n int, err error) {
	var left *unix.Timespec
	if len(r.waiting) > 0 {
		t := unix.NsecToTimespec(max(0, r.waiting[0].due-r.now()).Nanoseconds())
		left = &t
	}
	ready, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(r.epoll),
		uintptr(unsafe.Pointer(&r.events)), uintptr(len(r.events)), uintptr(unsafe.Pointer(left)), 0, 0)
	switch errno {
	case 0:
		return int(ready), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, errno
}
