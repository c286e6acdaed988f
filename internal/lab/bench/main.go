package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

const defaultRounds = 5

// options are the flags of the command line.
type options struct {
	only   *regexp.Regexp // measures
	rounds int
	quick  bool
}

func main() {
	if server := os.Getenv(relayEnv); server != "" {
		command.Exit("bench", serveRelay(server, int(os.Stdin.Fd()), os.Stdout))
		return
	}
	only := flag.String("only", "", "run only the measures whose names match this `regexp`")
	rounds := flag.Int("rounds", defaultRounds, "`number` of rounds of each measure")
	quick := flag.Bool("quick", false, "run each measure for an instant: fail on allocations, ignore times")
	folder := flag.String("o", "", "also write RESULTS.md into this `folder`")
	flag.Parse()
	command.Main("bench", func(ctx context.Context) error {
		return nottest.Run(func(owner *nottest.Owner) {
			o := options{nottest.Must(regexp.Compile(*only)), max(1, *rounds), *quick}
			p := &page{options: o, begin: time.Now(), loadBefore: loadAverage()}
			p.measureAll(ctx, owner)
			if *quick {
				nottest.Check(p.overdone())
			} else {
				fmt.Print(p)
			}
			if *folder != "" {
				nottest.Check(os.WriteFile(filepath.Join(*folder, "RESULTS.md"), []byte(p.String()), 0o644))
			}
		})
	})
}

// selected returns the measures to run.
func (o options) selected() (some []measure) {
	for _, m := range measures {
		if o.only.MatchString(m.name) && !(o.quick && m.long) {
			some = append(some, m)
		}
	}
	return some
}

// command returns the command line of this run, without the folder of -o.
func (o options) command() string {
	command := "go -C internal/lab run ./bench"
	if o.only.String() != "" {
		command += fmt.Sprintf(" -only '%s'", o.only)
	}
	if o.quick {
		command += " -quick"
	}
	if o.rounds != defaultRounds {
		command += fmt.Sprintf(" -rounds %d", o.rounds)
	}
	return command
}

// measureAll runs the measures one after the other, all on one Redis server. It starts
// the proxies first, so that nothing is measured in vain where they do not work.
func (p *page) measureAll(ctx context.Context, owner *nottest.Owner) {
	if len(p.options.selected()) == 0 {
		owner.Fatalf("no measure matches -only %q", p.options.only)
	}
	server := startServer()
	owner.Cleanup(server.Close)
	p.redisVersion = server.Client().InfoMap(ctx, "server").Item("Server", "redis_version")
	for _, n := range []network{near, far} {
		needs := func(m measure) bool { return m.plan.network == n }
		if slices.ContainsFunc(p.options.selected(), needs) {
			p.startProxy(owner, server.Addr(), n)
		}
	}
	for _, m := range p.options.selected() {
		begin := time.Now()
		p.results = append(p.results, result{m, p.measure(ctx, server, &m)})
		fmt.Fprintf(os.Stderr, "bench: %-18s %5.1f s\n", m.name, time.Since(begin).Seconds())
	}
}

func (p *page) startProxy(owner *nottest.Owner, server string, n network) {
	rest, err := keepAwake()
	p.asleep = err
	defer rest()
	proxy := startProxy(server, n)
	owner.Cleanup(func() { _ = proxy.close() })
	p.proxies = append(p.proxies, proxy)
	nottest.Check(proxy.adjust(p.options.quick))
}

// measure runs a measure on a stage of its own.
func (p *page) measure(ctx context.Context, server *server, m *measure) [][]sample {
	s := &stage{Owner: nottest.NewOwner(), server: server, quick: p.options.quick}
	defer s.Close()
	for _, proxy := range p.proxies {
		if proxy.network == m.plan.network {
			s.proxy = proxy
			rest, _ := keepAwake() // the page has the error
			s.Cleanup(rest)
		}
	}
	return m.run(ctx, s, p.options.rounds)
}
