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
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

const (
	exitFailed = 1 // a contestant failed, or a firm bar is missed
	exitUsage  = 2

	defaultRounds = 5
)

// options are the flags of the command line.
type options struct {
	only   *regexp.Regexp // measures
	rows   *regexp.Regexp // contestants
	rounds int
	quick  bool
	out    string
	cpu    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := 0
	var err error
	if server := os.Getenv(relayEnv); server != "" {
		err = serveRelay(server, int(os.Stdin.Fd()), os.Stdout)
	} else if task := os.Getenv(workerEnv); task != "" {
		err = work(ctx, task, os.Stdin, os.Stdout)
	} else {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		code = exitFailed
	}
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
	r := newReport(o)
	if err := profiled(o.cpu, func() error { return measureAll(ctx, o, r, stderr) }); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitFailed
	}
	if !o.quick {
		fmt.Fprint(stdout, r.measurements())
	}
	if err := r.write(o.out); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitFailed
	}
	if missed := r.firmMisses(); o.quick && missed != nil {
		fmt.Fprintf(stderr, "bench: missed:\n%s\n", strings.Join(missed, "\n"))
		return exitFailed
	}
	return 0
}

// write writes both pages and the plots into a folder, if one is named.
func (r *report) write(folder string) error {
	if folder == "" {
		return nil
	}
	files := r.drawings()
	files[resultsFile], files[measurementsFile] = r.results(), r.measurements()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "run only the measures whose names match this `regexp`")
	rows := flags.String("rows", "", "run only the rows whose names match this `regexp`")
	flags.IntVar(&o.rounds, "rounds", defaultRounds, "`number` of rounds of each measure")
	flags.BoolVar(&o.quick, "quick", false, "run each measure for an instant: fail on allocations, ignore times")
	flags.StringVar(&o.out, "o", "", "also write RESULTS.md, MEASUREMENTS.md and the plots into this `folder`")
	flags.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var errs [2]error
	o.only, errs[0] = regexp.Compile(*only)
	o.rows, errs[1] = regexp.Compile(*rows)
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	if o.rounds < 1 || flags.NArg() > 0 {
		return o, errors.New("want -rounds of at least 1, and no arguments")
	}
	if len(o.selected()) == 0 {
		return o, fmt.Errorf("no measure matches -only %q with a row that matches -rows %q", *only, *rows)
	}
	if o.quick {
		o.rounds = 1
	}
	return o, nil
}

// selected returns the measures to run, each with the rows to run.
func (o options) selected() (some []measure) {
	for _, m := range measures {
		if m = m.reduced(o.rows); o.only.MatchString(m.name) && len(m.contestants) > 0 && !(o.quick && m.long) {
			some = append(some, m)
		}
	}
	return some
}

// command returns the command line of this run, without the names of its files.
func (o options) command() string {
	command := "go -C internal/lab run ./bench"
	if o.only.String() != "" {
		command += fmt.Sprintf(" -only '%s'", o.only)
	}
	if o.rows.String() != "" {
		command += fmt.Sprintf(" -rows '%s'", o.rows)
	}
	if o.quick {
		return command + " -quick"
	}
	if o.rounds == defaultRounds {
		return command
	}
	return fmt.Sprintf("%s -rounds %d", command, o.rounds)
}

// profiled calls f, and writes a CPU profile of it to the file, if one is named.
func profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(err, out.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}

// measureAll runs the measures one after the other, all on one Redis server.
func measureAll(ctx context.Context, o options, r *report, stderr io.Writer) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.close()
	r.redisVersion = server.version(ctx)
	rest := r.keepAwake()
	proxies, err := startProxies(ctx, o, server.addr)
	rest()
	for _, p := range proxies {
		defer p.close()
	}
	if err != nil {
		return err
	}
	r.proxies = proxies
	for _, m := range o.selected() {
		begin := time.Now()
		s := &stage{server: server, quick: o.quick}
		for _, p := range proxies {
			if p.network == m.plan.network {
				s.proxy = p
				s.onClose(r.keepAwake())
			}
		}
		results, err := m.run(ctx, s, o.rounds)
		s.close()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.add(&m, results)
		fmt.Fprintf(stderr, "bench: %-18s %5.1f s\n", m.name, time.Since(begin).Seconds())
	}
	return nil
}

// startProxies starts the proxies that the measures need, and returns all
// running ones. It comes first, so that nothing is measured in vain where they
// do not work.
func startProxies(ctx context.Context, o options, server string) (proxies []*proxy, err error) {
	for _, n := range networks {
		needs := func(m measure) bool { return n.roundTrip > 0 && m.plan.network == n }
		if !slices.ContainsFunc(o.selected(), needs) {
			continue
		}
		p, err := startProxy(server, n)
		if err != nil {
			return proxies, err
		}
		proxies = append(proxies, p)
		if err := p.adjust(ctx, o.quick); err != nil {
			return proxies, err
		}
	}
	return proxies, nil
}
