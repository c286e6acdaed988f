package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports lie below the range that systems use for outgoing connections (32768 and up on Linux). While a server is down,
// the system could give a port of that range to a client. A client that redials such a port could even connect to itself.
const (
	firstPort = 10_000
	ports     = 10_000
	busOffset = 10_000 // from the port of a Cluster node to the port of its bus
)

// taken holds the ports of all servers of this process, so that a server that is down keeps its port.
var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// reservePort returns a port on which no process listens. It does not return the port again before the test ends. With
// bus, the port of the Cluster bus is free, too. Another process may still take either port before the server does.
func reservePort(tb testing.TB, bus bool) int {
	tb.Helper()
	taken.Lock()
	defer taken.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(ports)
		if taken.ports[port] || !isFree(port) || bus && !isFree(port+busOffset) {
			continue
		}
		taken.ports[port] = true
		tb.Cleanup(func() {
			taken.Lock()
			defer taken.Unlock()
			delete(taken.ports, port)
		})
		return port
	}
	tb.Fatalf("redistest: no free port found on 127.0.0.1")
	return 0
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
