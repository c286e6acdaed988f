package redistest

import (
	"errors"
	"net"
	"syscall"
)

// fill makes l a listener whose queue is full, and returns the connections that fill it.
func fill(l net.Listener) (waiting []net.Conn, err error) {
	if err := shorten(l.(*net.TCPListener)); err != nil {
		return nil, err
	}
	// A queue of length 0 has room for one, but that is up to the system.
	for range 16 {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 10*interval)
		if err != nil {
			return waiting, nil
		}
		waiting = append(waiting, conn)
	}
	return waiting, errors.New("a listener with a full queue still accepts connections on this system")
}

// shorten makes the queue of a listener as short as the system allows.
func shorten(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = syscall.Listen(int(fd), 0) }); err != nil {
		return err
	}
	return failure
}
