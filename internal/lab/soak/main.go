// The command line, and the run of all topologies.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

const (
	exitFailed = 1 // a promise was broken, or the machinery failed
	exitUsage  = 2

	// A leg lasts at least minLeg, so that each act has several kinds of trouble. A
	// long soak has legs of at most maxLeg.
	minLeg = 15 * time.Second
	maxLeg = time.Minute

	seedsOfLeg = 10 // at least one per act
)

type options struct {
	lasts     time.Duration
	seed      uint64
	instances int
	only      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run soaks, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "soak: %v\n", err)
		return exitUsage
	}
	redis.SetLogger(&logging.VoidLogger{}) // it would log every trouble
	r := &report{out: stdout, start: time.Now()}
	err = soak(ctx, o, r)
	r.summary()
	if err != nil {
		fmt.Fprintf(stderr, "soak: %v\n", err)
	}
	if err != nil || r.broken > 0 {
		fmt.Fprintf(stderr, "soak: repeat with: go -C internal/lab run ./soak %v\n", o)
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.lasts, "for", 10*time.Minute, "total `time` of the trouble")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "`seed` of the trouble and of the calls, otherwise random")
	flags.IntVar(&o.instances, "instances", 4, "`number` of instances that share the limits")
	flags.StringVar(&o.only, "only", "", "only this `topology`: standalone, sentinel or cluster; otherwise all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.instances < 1 || o.lasts <= 0 || flags.NArg() > 0 {
		return o, errors.New("want -instances of at least 1, a positive -for, and no arguments")
	}
	if len(o.topologies()) == 0 {
		return o, fmt.Errorf("-only %q is not a topology: want standalone, sentinel or cluster", o.only)
	}
	return o, nil
}

func (o options) String() string {
	text := fmt.Sprintf("-for %v -seed %d -instances %d", o.lasts, o.seed, o.instances)
	if o.only != "" {
		text += " -only " + o.only
	}
	return text
}

// soak goes through the topologies, one leg after the other.
func soak(ctx context.Context, o options, r *report) error {
	r.say("", "%v", o)
	possible := o.topologies()
	legs := max(1, int(o.lasts/minLeg))
	if legs >= len(possible) {
		legs = max(len(possible), int((o.lasts+maxLeg-1)/maxLeg))
	}
	for i := range legs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l := &leg{report: r, kind: possible[i%len(possible)]}
		if err := l.run(ctx, o.instances, o.lasts/time.Duration(legs), o.seed+uint64(i)*seedsOfLeg); err != nil {
			return fmt.Errorf("%s: %w", l.kind.name, err)
		}
	}
	return nil
}
