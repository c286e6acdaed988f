// The trouble for servers and for the network. Each of the two has one trouble after
// the other, at the same time as the other one.

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	minPause = 500 * time.Millisecond
	maxPause = 5 * time.Second
	minHold  = 100 * time.Millisecond
	maxHold  = 3 * time.Second
	// shortHold is too short for an election, which begins after 1 s of silence.
	shortHold = 500 * time.Millisecond
)

// trouble makes trouble for d, and returns when all of it has ended.
func (l *leg) trouble(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, trouble := range []func(context.Context, *rand.Rand){l.troubleServers, l.troubleNetwork} {
		random := rand.New(rand.NewPCG(l.seed, uint64(i)))
		both.Go(func() { errs[i] = l.owner.Do(func() { trouble(ctx, random) }) })
	}
	both.Wait()
	return errors.Join(append(errs, l.owner.Do(l.topology.ready))...)
}

// An event is trouble for servers. It has ended when do returns.
type event struct {
	name    string
	loses   bool // it loses data
	elected bool // it needs replicas
	do      func(l *leg, master *redistest.Server, hold time.Duration)
}

var events = []event{
	{name: "stop", do: func(l *leg, master *redistest.Server, hold time.Duration) {
		if l.topology.replica != nil && !l.loses {
			hold = min(hold, shortHold)
		}
		master.Stop()
		time.Sleep(hold)
		master.Continue()
	}},
	{name: "script flush", do: func(l *leg, _ *redistest.Server, _ time.Duration) { l.order("SCRIPT", "FLUSH") }},
	{name: "client kill", do: func(l *leg, _ *redistest.Server, _ time.Duration) {
		l.order("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}},
	{name: "full", do: func(l *leg, _ *redistest.Server, hold time.Duration) {
		l.order("CONFIG", "SET", "maxmemory", 1)
		time.Sleep(hold)
		l.order("CONFIG", "SET", "maxmemory", 0)
	}},
	{name: "kill", loses: true, do: func(_ *leg, master *redistest.Server, hold time.Duration) {
		master.Kill()
		time.Sleep(hold)
		master.Restart()
	}},
	{name: "promote", loses: true, elected: true, do: func(l *leg, master *redistest.Server, _ time.Duration) {
		replica := l.topology.replica(master)
		master.Kill()
		l.topology.promoted(replica)
		master.Restart()
	}},
	{name: "flush all", loses: true, do: func(l *leg, _ *redistest.Server, _ time.Duration) { l.order("FLUSHALL") }},
}

// order sends a command to all masters, without a proxy.
func (l *leg) order(args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range l.topology.masters() {
		if err := s.Client().Do(ctx, args...).Err(); err != nil {
			l.owner.Fatalf("%v on %s: %v", args, s.Addr(), err)
		}
	}
}

func (l *leg) troubleServers(ctx context.Context, random *rand.Rand) {
	possible := slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		return e.loses && !l.loses || e.elected && l.topology.replica == nil
	})
	next := deck(random, len(possible))
	for pause(ctx, between(random, minPause, maxPause)) {
		e, before, masters := possible[next()], l.topology.places(), l.topology.masters()
		master, begin := masters[random.IntN(len(masters))], time.Now()
		e.do(l, master, between(random, minHold, maxHold))
		l.topology.ready()
		l.events.Add(1)
		l.say("%-13s %s %.1f s", e.name, master.Addr(), time.Since(begin).Seconds())
		after := l.topology.places()
		if e.loses || !slices.Equal(before, after) {
			l.losses.Add(1)
		}
		if !l.loses && !slices.Equal(before, after) { // the machine was so slow that a live master was considered dead
			l.say("%-13s %v to %v, unasked", "promoted", before, after)
		}
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

const scripts = "evalsha" // handshakes do not contain it

// troubleNetwork troubles the connections of one instance, or all, to one server,
// or all. It first cuts the replies to scripts: a second attempt would charge twice.
func (l *leg) troubleNetwork(ctx context.Context, random *rand.Rand) {
	if pause(ctx, between(random, minPause, 2*minPause)) {
		l.strike(ctx, random, "cut", redistest.Cut().Containing(scripts), l.instances, l.topology.servers)
	}
	next := deck(random, len(faults))
	for pause(ctx, between(random, minPause, maxPause)) {
		f := faults[next()]
		struck := f.make(random)
		if random.IntN(2) == 0 {
			struck = struck.Containing(scripts)
		}
		l.strike(ctx, random, f.name, struck, oneOrAll(random, l.instances), oneOrAll(random, l.topology.servers))
	}
}

// strike lets a fault last for a while.
func (l *leg) strike(ctx context.Context, random *rand.Rand, name string, struck redistest.Fault, some []*instance, servers []*redistest.Server) {
	set := func(f redistest.Fault) {
		for _, in := range some {
			for _, s := range servers {
				in.proxies[s.Addr()].Set(f)
			}
		}
	}
	begin := time.Now()
	set(struck)
	pause(ctx, between(random, minHold, maxHold))
	set(redistest.Pass())
	l.events.Add(1)
	l.say("%-13s %d instances to %d servers %.1f s", name, len(some), len(servers), time.Since(begin).Seconds())
}

func oneOrAll[T any](random *rand.Rand, all []T) []T {
	if random.IntN(2) == 0 {
		return all
	}
	i := random.IntN(len(all))
	return all[i : i+1]
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

// between returns a random duration from a to b.
func between(random *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(random.Int64N(int64(b-a)+1))
}

// pause waits for d, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
