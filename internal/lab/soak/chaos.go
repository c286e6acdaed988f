package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A chaos makes trouble for servers and for the network at the same time. Each of
// the two has one trouble after the other.
type chaos struct {
	leg    *leg
	loses  bool // trouble may lose data
	events atomic.Int64
	losses atomic.Int64

	mu  sync.Mutex
	err error // of the test itself, not of the limiter
}

// An event is trouble for servers. It has ended when do returns.
type event struct {
	name    string
	loses   bool // it loses data
	elected bool // it needs replicas
	do      func(*chaos, *rand.Rand) string
}

var events = []event{
	{name: "stop", do: (*chaos).stop},
	{name: "script flush", do: (*chaos).flushScripts},
	{name: "client kill", do: (*chaos).killClients},
	{name: "full", do: (*chaos).fill},
	{name: "kill", loses: true, do: (*chaos).kill},
	{name: "long stop", loses: true, elected: true, do: (*chaos).stopLong},
	{name: "promote", loses: true, elected: true, do: (*chaos).promote},
	{name: "flush all", loses: true, do: (*chaos).flush},
}

const (
	minPause = 500 * time.Millisecond
	maxPause = 5 * time.Second
	minHold  = 100 * time.Millisecond
	maxHold  = 3 * time.Second
	// shortHold is too short for an election, which begins after 1 s of silence.
	shortHold = 500 * time.Millisecond
)

// run makes trouble for d, and returns when all of it has ended.
func (c *chaos) run(ctx context.Context, d time.Duration, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var both sync.WaitGroup
	for i, trouble := range []func(context.Context, *rand.Rand){c.troubleServers, c.troubleNetwork} {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		both.Go(func() {
			c.fail(c.leg.owner.Do(func() { trouble(ctx, random) }))
		})
	}
	both.Wait()
	c.fail(c.leg.owner.Do(c.leg.topology.ready))
	return c.err
}

func (c *chaos) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *chaos) troubleServers(ctx context.Context, random *rand.Rand) {
	var possible []event
	for _, e := range events {
		if (c.loses || !e.loses) && (c.leg.topology.failsOver() || !e.elected) {
			possible = append(possible, e)
		}
	}
	next := deck(random, len(possible))
	for pause(ctx, between(random, minPause, maxPause)) {
		e := possible[next()]
		before := c.leg.topology.places()
		if e.loses {
			c.losses.Add(1)
		}
		begin := time.Now()
		detail := e.do(c, random)
		c.leg.topology.ready()
		c.events.Add(1)
		c.leg.say("%-13s %s %.1f s", e.name, detail, time.Since(begin).Seconds())
		if after := c.leg.topology.places(); !e.loses && fmt.Sprint(before) != fmt.Sprint(after) {
			c.losses.Add(1) // the machine was so slow that a live master was considered dead
			c.leg.say("%-13s %v to %v, unasked", "promoted", before, after)
		}
	}
}

func (c *chaos) stop(random *rand.Rand) string {
	hold := maxHold
	if c.leg.topology.failsOver() {
		hold = shortHold
	}
	return c.stopFor(between(random, minHold, hold), random)
}

func (c *chaos) stopLong(random *rand.Rand) string {
	return c.stopFor(between(random, shortHold, maxHold), random)
}

func (c *chaos) stopFor(hold time.Duration, random *rand.Rand) string {
	server := c.leg.topology.oneMaster(random)
	server.Stop()
	time.Sleep(hold)
	server.Continue()
	return server.Addr()
}

func (c *chaos) flushScripts(*rand.Rand) string {
	c.fail(order(c.leg.topology.masters(), "SCRIPT", "FLUSH"))
	return "everywhere"
}

func (c *chaos) killClients(*rand.Rand) string {
	c.fail(order(c.leg.topology.masters(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
	return "everywhere"
}

func (c *chaos) fill(random *rand.Rand) string {
	masters := c.leg.topology.masters()
	c.fail(order(masters, "CONFIG", "SET", "maxmemory", 1))
	time.Sleep(between(random, minHold, maxHold))
	c.fail(order(masters, "CONFIG", "SET", "maxmemory", 0))
	return "everywhere"
}

func (c *chaos) kill(random *rand.Rand) string {
	server := c.leg.topology.oneMaster(random)
	server.Kill()
	time.Sleep(between(random, 0, maxHold))
	server.Restart()
	return server.Addr()
}

func (c *chaos) promote(random *rand.Rand) string {
	server := c.leg.topology.oneMaster(random)
	c.leg.topology.promote(server, server.Kill)
	server.Restart()
	return server.Addr()
}

func (c *chaos) flush(*rand.Rand) string {
	c.fail(order(c.leg.topology.masters(), "FLUSHALL"))
	return "everywhere"
}

// between returns a random duration from a to b.
func between(random *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(random.Int64N(int64(b-a)+1))
}

// pause waits for d, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// A fault is trouble of the network.
type fault struct {
	name string
	make func(*rand.Rand) redistest.Fault
}

var faults = []fault{
	{"delay", func(r *rand.Rand) redistest.Fault {
		return redistest.Delay(between(r, 10*time.Millisecond, 400*time.Millisecond))
	}},
	{"trickle", func(r *rand.Rand) redistest.Fault { return redistest.Trickle(10 + r.IntN(2000)) }},
	{"swallow", func(*rand.Rand) redistest.Fault { return redistest.Swallow() }},
	{"cut", func(*rand.Rand) redistest.Fault { return redistest.Cut() }},
	{"black hole", func(*rand.Rand) redistest.Fault { return redistest.BlackHole() }},
	{"unreachable", func(*rand.Rand) redistest.Fault { return redistest.Unreachable() }},
	{"refuse", func(*rand.Rand) redistest.Fault { return redistest.Refuse() }},
}

// troubleNetwork troubles the connections of one instance, or all, to one server,
// or all. It first cuts the replies to scripts: a second attempt would charge twice.
func (c *chaos) troubleNetwork(ctx context.Context, random *rand.Rand) {
	if pause(ctx, between(random, minPause, 2*minPause)) {
		c.strike(ctx, "cut", redistest.Cut().Containing("evalsha"), c.leg.allProxies(), "all instances, scripts only", random)
	}
	next := deck(random, len(faults))
	for pause(ctx, between(random, minPause, maxPause)) {
		f := faults[next()]
		struck, who := c.leg.proxies(random)
		what := f.make(random)
		if random.IntN(2) == 0 { // handshakes pass
			what, who = what.Containing("evalsha"), who+", scripts only"
		}
		c.strike(ctx, f.name, what, struck, who, random)
	}
}

// strike lets a fault last for a while.
func (c *chaos) strike(ctx context.Context, name string, what redistest.Fault, struck []*redistest.Proxy, who string, random *rand.Rand) {
	begin := time.Now()
	for _, p := range struck {
		p.Set(what)
	}
	pause(ctx, between(random, minHold, maxHold))
	for _, p := range struck {
		p.Set(redistest.Pass())
	}
	c.events.Add(1)
	c.leg.say("%-13s %s %.1f s", name, who, time.Since(begin).Seconds())
}

// deck returns a function that draws numbers below n at random. It draws each
// number once before it draws any number again.
func deck(random *rand.Rand, n int) func() int {
	var left []int // not drawn yet
	return func() int {
		if len(left) == 0 {
			left = random.Perm(n)
		}
		drawn := left[0]
		left = left[1:]
		return drawn
	}
}
