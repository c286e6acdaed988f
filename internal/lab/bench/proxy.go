// The networks between the contestants and Redis: a proxy delays both directions.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"
)

// relayEnv is the variable with the address of the server. A process of this program
// that has it is a proxy.
const relayEnv = "PENSTOCK_BENCH_RELAY"

// A network lies between the contestants and Redis.
type network struct {
	name      string
	roundTrip time.Duration // of a PING; 0: loopback, without a proxy
	extra     time.Duration // the longest additional delay of a chunk of bytes
}

var (
	loopback = network{name: "loopback"}
	near     = network{name: "0.5ms", roundTrip: 500 * time.Microsecond}
	far      = network{name: "2ms", roundTrip: 2 * time.Millisecond}
	jittery  = network{name: "jitter", roundTrip: 500 * time.Microsecond, extra: 2 * time.Millisecond}

	networks = []network{loopback, near, far, jittery}
)

// title returns the network as a part of a title.
func (n network) title() string {
	switch {
	case n.roundTrip == 0:
		return "loopback"
	case n.extra > 0:
		return fmt.Sprintf("a round trip of %v ms with jitter", n.roundTrip.Seconds()*1e3)
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
	pings   []pings
}

// startProxy starts a proxy. Its delay is not adjusted yet; see adjust.
func startProxy(server string, n network) (*proxy, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &proxy{network: n, cmd: exec.Command(program), delay: n.roundTrip / 2}
	// The proxy's thread seems to run while it waits, so the runtime would send it signals.
	p.cmd.Env = append(os.Environ(), relayEnv+"="+server, "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	p.cmd.Stderr = os.Stderr
	if p.control, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the proxy did not start: %w", err), p.close())
	}
	p.addr = strings.TrimSpace(line)
	return p, p.set()
}

// close ends the proxy.
func (p *proxy) close() error { return errors.Join(p.control.Close(), p.cmd.Wait()) }

// set sends the delays to the proxy.
func (p *proxy) set() error {
	_, err := fmt.Fprintln(p.control, p.delay.Nanoseconds(), p.network.extra.Nanoseconds())
	return err
}

const (
	adjustments = 40
	pingsLast   = 200 * time.Millisecond
	pingsOff    = 0.1 // largest error of the median PING, as a part of the round trip
)

// adjust finds the delay with which PINGs take the right time. The proxy's own work
// and its late wake-ups are part of that time. adjust tries again and again, because
// other work on the machine disturbs it.
func (p *proxy) adjust(ctx context.Context, quick bool) error {
	lasts, tries := pingsLast, adjustments
	if quick {
		lasts, tries = lasts/20, 1
	}
	for range tries {
		if err := p.set(); err != nil {
			return err
		}
		p.pings = p.pings[:0]
		right := true
		for _, connections := range pingConnections {
			got, err := p.ping(ctx, connections, lasts)
			if err != nil {
				return err
			}
			right = right && math.Abs(float64(p.off(got))) <= pingsOff*float64(p.network.roundTrip)
			p.pings = append(p.pings, got)
		}
		if right || quick {
			return nil
		}
		// A quarter of the error in each direction removes half of it. The change is
		// bounded: one slow try must not make the proxy too fast.
		change := (p.off(p.pings[0]) + p.off(p.pings[1])) / 2
		p.delay -= min(change/4, p.network.roundTrip/20)
		p.delay = min(max(p.delay, p.network.roundTrip/4), p.network.roundTrip/2)
	}
	return fmt.Errorf("the proxy cannot keep %s, even after %d tries. The last one: %v. Is the machine busy?",
		p.network.title(), tries, p.pings)
}

func (p *proxy) ping(ctx context.Context, connections int, lasts time.Duration) (pings, error) {
	before, err := cpuOf(p.cmd.Process.Pid)
	if err != nil {
		return pings{}, err
	}
	got, err := ping(ctx, p.addr, connections, lasts)
	if err != nil {
		return pings{}, err
	}
	after, err := cpuOf(p.cmd.Process.Pid)
	got.cpu = (after - before) / time.Duration(got.count)
	return got, err
}

// off returns how much longer than the round trip the median PING took.
func (p *proxy) off(got pings) time.Duration { return got.median - p.network.roundTrip }

// describe writes the times of PINGs through the proxy, and its CPU.
func (p *proxy) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\nThe proxy for %s delays each direction by %v. PINGs through it:\n", p.network.title(), p.delay.Round(time.Microsecond))
	for _, got := range p.pings {
		fmt.Fprintf(b, "- %v\n", got)
	}
}
