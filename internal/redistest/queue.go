package redistest

import (
	"errors"
	"net"
	"syscall"
)

// fill makes l a listener whose queue is full, and returns the connections that fill it.
func fill(l *net.TCPListener) (waiting []net.Conn, err error) {
	// The shortest queue that the system offers.
	if err := control(l, func(fd descriptor) error { return syscall.Listen(fd, 0) }); err != nil {
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

// shut closes a listener at once. A plain Close could leave it open for a moment, during which clients are accepted and
// the port cannot be listened on again: a process that is just being started shares the files of this one until then.
func shut(l *net.TCPListener) {
	_ = control(l, func(fd descriptor) error { return syscall.Shutdown(fd, syscall.SHUT_RD) }) // Linux can; others just close
	_ = l.Close()
}

func control(l *net.TCPListener, f func(fd descriptor) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = f(descriptor(fd)) }); err != nil {
		return err
	}
	return failure
}
