// The networks between the contestants and Redis: a proxy delays both directions.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// relayEnv is the variable with the address of the server. A process of this program
// that has it is a proxy.
const relayEnv = "PENSTOCK_BENCH_RELAY"

// A network lies between the contestants and Redis.
type network struct {
	name      string
	roundTrip time.Duration // of a PING; 0: loopback, without a proxy
}

var (
	loopback = network{name: "loopback"}
	near     = network{name: "0.5ms", roundTrip: 500 * time.Microsecond}
	far      = network{name: "2ms", roundTrip: 2 * time.Millisecond}

	networks = []network{loopback, near, far}
)

// title returns the network as a part of a title.
func (n network) title() string {
	if n.roundTrip == 0 {
		return "loopback"
	}
	return fmt.Sprintf("a round trip of %v ms", n.roundTrip.Seconds()*1e3)
}

// A proxy is a process that stands between contestants and the server.
// It ends when its input ends, so it never outlives this process.
type proxy struct {
	network network
	addr    string
	cmd     *exec.Cmd
	control io.WriteCloser
	delay   time.Duration // of each direction
	ping    time.Duration // the median time
}

// startProxy starts a proxy. Its delay is not adjusted yet; see adjust.
func startProxy(server string, n network) *proxy {
	p := &proxy{network: n, cmd: exec.Command(nottest.Must(os.Executable())), delay: n.roundTrip / 2}
	// The proxy's thread seems to run while it waits, so the runtime would send it signals.
	p.cmd.Env = append(os.Environ(), relayEnv+"="+server, "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	p.cmd.Stderr = os.Stderr
	p.control = nottest.Must(p.cmd.StdinPipe())
	out := nottest.Must(p.cmd.StdoutPipe())
	nottest.Check(p.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		nottest.Check(errors.Join(fmt.Errorf("the proxy did not start: %w", err), p.close()))
	}
	p.addr = strings.TrimSpace(line)
	p.set()
	return p
}

// close ends the proxy.
func (p *proxy) close() error { return errors.Join(p.control.Close(), p.cmd.Wait()) }

// set sends the delay to the proxy.
func (p *proxy) set() { nottest.Must(fmt.Fprintln(p.control, p.delay.Nanoseconds())) }

const (
	adjustments = 40
	pings       = 150
	pingsOff    = 10 // the median PING is off by at most the round trip, divided by this
)

// adjust finds the delay with which PINGs take the right time. The proxy's own work
// and its late wake-ups are part of that time. adjust tries again and again, because
// other work on the machine disturbs it.
func (p *proxy) adjust(quick bool) error {
	for range adjustments {
		p.set()
		p.ping = ping(p.addr)
		off := p.ping - p.network.roundTrip
		if quick || off.Abs() <= p.network.roundTrip/pingsOff {
			return nil
		}
		// A quarter of the error in each direction removes half of it. The change is
		// bounded: one slow try must not make the proxy too fast.
		p.delay -= min(off/4, p.network.roundTrip/20)
		p.delay = min(max(p.delay, p.network.roundTrip/4), p.network.roundTrip/2)
	}
	return fmt.Errorf("the proxy cannot keep %s: the median PING took %v after %d tries. Is the machine busy?",
		p.network.title(), p.ping, adjustments)
}

// ping returns the median time of PINGs, sent one after the other.
func ping(addr string) time.Duration {
	conn := nottest.Must(net.Dial("tcp", addr))
	defer conn.Close()
	var pong [16]byte
	var took []time.Duration
	for range pings {
		sent := time.Now()
		nottest.Must(conn.Write([]byte("PING\r\n")))
		nottest.Must(conn.Read(pong[:]))
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// keepAwake asks the kernel to let no idle processor sleep until rest is called. The
// proxy waits most of the time, and so do few callers. A processor of a virtual
// machine that sleeps takes tens of microseconds to wake up, so the proxy would be late,
// and a network is not.
//
// The kernel remembers the request while the file is open. Its four bytes are the longest
// time that a processor may take to wake up, in microseconds (Linux,
// Documentation/power/pm_qos_interface.rst). Only root may open it.
func keepAwake() (rest func(), err error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return func() {}, err
	}
	_, err = f.Write(make([]byte, 4))
	return func() { _ = f.Close() }, err
}
