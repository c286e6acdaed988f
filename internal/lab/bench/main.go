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
	if o.rounds != defaultRounds {
		command += fmt.Sprintf(" -rounds %d", o.rounds)
	}
	return command
}

// measureAll runs the measures one after the other, all on one Redis server.
func (p *page) measureAll(ctx context.Context) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.close()
	p.redisVersion = server.version(ctx)
	defer p.closeProxies()
	if err := p.startProxies(server.addr); err != nil {
		return err
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

// measure runs a measure on a stage of its own.
func (p *page) measure(ctx context.Context, server *server, m *measure) ([][]sample, error) {
	s := &stage{server: server, quick: p.options.quick}
	defer s.close()
	for _, proxy := range p.proxies {
		if proxy.network == m.plan.network {
			s.proxy = proxy
			s.onClose(p.keepAwake())
		}
	}
	return m.run(ctx, s, p.options.rounds)
}

// startProxies starts the proxies that the measures need. It comes first, so that
// nothing is measured in vain where they do not work.
func (p *page) startProxies(server string) error {
	defer p.keepAwake()()
	for _, n := range networks {
		needs := func(m measure) bool { return n.roundTrip > 0 && m.plan.network == n }
		if !slices.ContainsFunc(p.options.selected(), needs) {
			continue
		}
		proxy, err := startProxy(server, n)
		if err != nil {
			return err
		}
		p.proxies = append(p.proxies, proxy)
		if err := proxy.adjust(p.options.quick); err != nil {
			return err
		}
	}
	return nil
}

func (p *page) closeProxies() {
	for _, proxy := range p.proxies {
		_ = proxy.close()
	}
}

// keepAwake keeps idle processors awake until the result is called.
func (p *page) keepAwake() (rest func()) {
	awake, err := keepAwake()
	if err != nil {
		p.asleep = err
		return func() {}
	}
	return func() { _ = awake.Close() }
}
