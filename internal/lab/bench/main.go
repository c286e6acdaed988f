// The command line, and the run of all measures.

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
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
		fail(serveRelay(server, int(os.Stdin.Fd()), os.Stdout))
		return
	}
	only := flag.String("only", "", "run only the measures whose names match this `regexp`")
	rounds := flag.Int("rounds", defaultRounds, "`number` of rounds of each measure")
	quick := flag.Bool("quick", false, "run each measure for an instant: fail on allocations, ignore times")
	folder := flag.String("o", "", "also write RESULTS.md into this `folder`")
	flag.Parse()
	names, err := regexp.Compile(*only)
	fail(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := &page{options: options{names, max(1, *rounds), *quick}, begin: time.Now(), loadBefore: loadAverage()}
	fail(p.measureAll(ctx))
	if *quick {
		fail(p.overdone())
	} else {
		fmt.Print(p)
	}
	if *folder != "" {
		fail(os.WriteFile(filepath.Join(*folder, "RESULTS.md"), []byte(p.String()), 0o644))
	}
}

// fail ends the program if there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
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
func (p *page) measureAll(ctx context.Context) error {
	if len(p.options.selected()) == 0 {
		return fmt.Errorf("no measure matches -only %q", p.options.only)
	}
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.Close()
	p.redisVersion = server.redis.InfoMap(ctx, "server").Item("Server", "redis_version")
	defer func() {
		for _, proxy := range p.proxies {
			_ = proxy.close()
		}
	}()
	for _, n := range []network{near, far} {
		needs := func(m measure) bool { return m.plan.network == n }
		if slices.ContainsFunc(p.options.selected(), needs) {
			if err := p.startProxy(server.addr, n); err != nil {
				return err
			}
		}
	}
	for _, m := range p.options.selected() {
		begin := time.Now()
		samples, err := p.measure(ctx, server, &m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		p.results = append(p.results, result{m, samples})
		fmt.Fprintf(os.Stderr, "bench: %-18s %5.1f s\n", m.name, time.Since(begin).Seconds())
	}
	return nil
}

func (p *page) startProxy(server string, n network) error {
	rest, err := keepAwake()
	p.asleep = err
	defer rest()
	proxy, err := startProxy(server, n)
	if err != nil {
		return err
	}
	p.proxies = append(p.proxies, proxy)
	return proxy.adjust(p.options.quick)
}

// measure runs a measure on a stage of its own.
func (p *page) measure(ctx context.Context, server *server, m *measure) ([][]sample, error) {
	s := &stage{server: server, quick: p.options.quick}
	defer s.close()
	for _, proxy := range p.proxies {
		if proxy.network == m.plan.network {
			s.proxy = proxy
			rest, _ := keepAwake() // the page has the error
			s.onClose(rest)
		}
	}
	return m.run(ctx, s, p.options.rounds)
}
