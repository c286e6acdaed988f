// The command line, and the run of all measures.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	exitFailed = 1 // a contestant failed, or a quick run found too many allocations
	exitUsage  = 2

	defaultRounds = 5
)

// options are the flags of the command line.
type options struct {
	only   *regexp.Regexp // measures
	rounds int
	quick  bool
	out    string
}

func main() {
	if server := os.Getenv(relayEnv); server != "" {
		if err := serveRelay(server, int(os.Stdin.Fd()), os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
			os.Exit(exitFailed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitUsage
	}
	p := &page{options: o, begin: time.Now(), loadBefore: loadAverage()}
	if err := p.measureAll(ctx, stderr); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitFailed
	}
	if !o.quick {
		fmt.Fprint(stdout, p)
	}
	if o.out != "" {
		if err := os.WriteFile(filepath.Join(o.out, resultsFile), []byte(p.String()), 0o644); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return exitFailed
		}
	}
	if texts := p.overdone(); o.quick && texts != nil {
		fmt.Fprintf(stderr, "bench: missed:\n%s\n", strings.Join(texts, "\n"))
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "run only the measures whose names match this `regexp`")
	flags.IntVar(&o.rounds, "rounds", defaultRounds, "`number` of rounds of each measure")
	flags.BoolVar(&o.quick, "quick", false, "run each measure for an instant: fail on allocations, ignore times")
	flags.StringVar(&o.out, "o", "", "also write RESULTS.md into this `folder`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	if o.rounds < 1 || flags.NArg() > 0 {
		return o, errors.New("want -rounds of at least 1, and no arguments")
	}
	if len(o.selected()) == 0 {
		return o, fmt.Errorf("no measure matches -only %q", *only)
	}
	return o, nil
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
	switch {
	case o.quick:
		command += " -quick"
	case o.rounds != defaultRounds:
		command += fmt.Sprintf(" -rounds %d", o.rounds)
	}
	return command
}

// measureAll runs the measures one after the other, all on one Redis server.
func (p *page) measureAll(ctx context.Context, stderr io.Writer) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.close()
	p.redisVersion = server.version(ctx)
	err = p.startProxies(server.addr)
	for _, proxy := range p.proxies {
		defer proxy.close()
	}
	if err != nil {
		return err
	}
	for _, m := range p.options.selected() {
		begin := time.Now()
		samples, err := p.measure(ctx, server, &m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		p.results = append(p.results, result{m, samples})
		fmt.Fprintf(stderr, "bench: %-18s %5.1f s\n", m.name, time.Since(begin).Seconds())
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

// keepAwake keeps idle processors awake until the result is called.
func (p *page) keepAwake() (rest func()) {
	awake, err := keepAwake()
	if err != nil {
		p.asleep = err
		return func() {}
	}
	return func() { _ = awake.Close() }
}
