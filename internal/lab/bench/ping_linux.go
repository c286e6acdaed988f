// The PINGs that measure a proxy. One thread sends them, so that the scheduler of
// goroutines does not add to their times. Like the proxy, it has a higher priority
// than other work on the machine.

package main

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// pingConnections is how many connections send a PING in turn.
const pingConnections = 16

// ping returns the median time of the PINGs that it sends for so long, one after the other.
func ping(addr string, lasts time.Duration) (median time.Duration, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // without unlock: the thread ends, and so does its priority
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
		median, err = pingAll(addr, lasts)
	}()
	<-done
	return median, err
}

func pingAll(addr string, lasts time.Duration) (time.Duration, error) {
	to, err := socketAddr(addr)
	if err != nil {
		return 0, err
	}
	var connections [pingConnections]int
	for i := range connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		connections[i] = fd
		// After a reply, the server has accepted.
		if err := errors.Join(unix.Connect(fd, to), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), pingOnce(fd)); err != nil {
			return 0, err
		}
	}
	var took []time.Duration
	for begin := time.Now(); time.Since(begin) < lasts || len(took) == 0; {
		sent := time.Now()
		if err := pingOnce(connections[len(took)%pingConnections]); err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func pingOnce(fd int) error {
	if _, err := unix.Write(fd, []byte("PING\r\n")); err != nil {
		return err
	}
	var pong [16]byte
	n, err := unix.Read(fd, pong[:])
	if n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}
