package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A leg is the part of a soak with one topology. In its first act no data is lost.
// In its second act any trouble may come.
type leg struct {
	report    *report
	kind      kind
	owner     *nottest.Owner
	topology  *topology
	instances []*instance
	waits     waits
}

func (l *leg) say(format string, args ...any)    { l.report.say(l.kind.name, format, args...) }
func (l *leg) broken(format string, args ...any) { l.report.fail(l.kind.name, format, args...) }

// run starts everything, soaks it for about d, and ends it.
func (l *leg) run(ctx context.Context, instances int, d time.Duration, seed uint64) error {
	l.owner = nottest.NewOwner()
	defer l.owner.Close()
	if err := l.owner.Do(func() { l.begin(ctx, instances) }); err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(context.Background())
	defer stopWatching()
	go l.waits.watch(watching)
	before := measure()
	err := l.acts(ctx, d, seed)
	for _, in := range l.instances {
		err = errors.Join(err, in.close())
	}
	if err == nil {
		l.judgeGrowth(before)
	}
	return err
}

// begin starts the servers and the proxies.
func (l *leg) begin(ctx context.Context, instances int) {
	l.topology = l.kind.start(l.owner)
	for range instances {
		l.instances = append(l.instances, newInstance(l.owner, l.topology.servers))
	}
	for _, s := range l.topology.servers {
		_ = s.Client().Ping(ctx).Err() // before growth is measured, because these clients stay
	}
	l.say("%d instances", instances)
}

// An act is a time of trouble, and the calm after it.
type act struct {
	name  string
	lasts time.Duration
	loses bool // trouble may lose data
}

func (l *leg) acts(ctx context.Context, d time.Duration, seed uint64) error {
	for _, in := range l.instances {
		if err := in.start(l.topology, len(l.instances)); err != nil {
			return err
		}
	}
	for i, a := range []act{{name: "keeps", lasts: d * 2 / 5}, {name: "loses", lasts: d * 3 / 5, loses: true}} {
		if ctx.Err() != nil {
			return nil
		}
		if err := l.act(ctx, a, seed+uint64(i)); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

func (l *leg) act(ctx context.Context, a act, seed uint64) error {
	work := &load{leg: l, books: newBooks(a.name)}
	working, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	var all sync.WaitGroup
	all.Go(func() { work.run(working, seed) })

	before := l.tally()
	c := &chaos{leg: l, loses: a.loses}
	if err := c.run(ctx, a.lasts, seed); err != nil {
		return err
	}
	row := row{topology: l.kind.name, act: a.name, events: c.events.Load(), losses: c.losses.Load()}
	row.closedAfter = l.awaitClosed()
	stopWork()
	all.Wait()
	l.awaitTold()
	row.lateness = l.judgeWaits()
	row.tally = l.tally().since(before)
	row.calls, row.refused, row.hungUp = work.calls.Load(), work.refused.Load(), work.hungUp.Load()
	l.judgeBooks(work.books, &row)
	if row.losses == 0 {
		row.once = len(work.onces)
		if err := l.audit(work.onces, row.tally.lost); err != nil {
			return err
		}
	}
	l.judgeFairness(work.books, rand.New(rand.NewPCG(seed, callers)))
	l.report.add(row)
	return nil
}

// proxies returns the proxies between one instance, or all, and one server, or all.
func (l *leg) proxies(random *rand.Rand) (struck []*redistest.Proxy, who string) {
	instances, servers := l.instances, l.topology.servers
	who = "all instances"
	if random.IntN(2) == 0 {
		i := random.IntN(len(instances))
		instances, who = instances[i:i+1], fmt.Sprint("instance ", i)
	}
	if len(servers) > 1 && random.IntN(2) == 0 {
		i := random.IntN(len(servers))
		servers = servers[i : i+1]
		who += " to " + servers[0].Addr()
	}
	return proxiesOf(instances, servers), who
}

func (l *leg) allProxies() []*redistest.Proxy { return proxiesOf(l.instances, l.topology.servers) }

func proxiesOf(instances []*instance, servers []*redistest.Server) (proxies []*redistest.Proxy) {
	for _, in := range instances {
		for _, s := range servers {
			proxies = append(proxies, in.proxies[s.Addr()])
		}
	}
	return proxies
}
