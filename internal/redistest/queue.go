package redistest

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// fullAfter is how long fill waits for a connection before it considers the queue full.
const fullAfter = 20 * time.Millisecond

// fill fills the queue of l, and returns the connections that fill it.
func fill(l *net.TCPListener) (waiting []net.Conn, err error) {
	// Ask for the shortest queue that the system offers.
	if err := control(l, func(fd descriptor) error { return syscall.Listen(fd, 0) }); err != nil {
		return nil, err
	}
	// On Linux a queue of length 0 has room for one connection. Other systems may have room for more.
	for range 16 {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), fullAfter)
		if err != nil {
			return waiting, nil
		}
		waiting = append(waiting, conn)
	}
	return waiting, errors.New("a listener with a full queue still accepts connections on this system")
}

// shut closes a listener at once. After a plain Close, a process that is just being started may share the listener for
// another moment. During that moment the system would accept clients, and the port would not be free.
func shut(l *net.TCPListener) {
	_ = control(l, func(fd descriptor) error { return syscall.Shutdown(fd, syscall.SHUT_RD) }) // works on Linux; other systems only close
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
