package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports lie below the range from which systems serve outgoing connections (32768 and up on Linux): a port from that
// range could go to a client while its server is down, and a client that redials it could connect to itself.
const (
	firstPort = 10_000
	ports     = 10_000
	busOffset = 10_000 // a Cluster node's bus listens that far above its port
)

// taken holds the ports of all servers of this process, so that a server that is down keeps its port.
var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// reservePort returns a port that nobody listens on, and which is not given away again before the test ends.
// With bus, the same holds for the port of the Cluster bus. Another process may still take it first.
func reservePort(tb testing.TB, bus bool) (int, error) {
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
		return port, nil
	}
	return 0, errors.New("no free port found on 127.0.0.1")
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
