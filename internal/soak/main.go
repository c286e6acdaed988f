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

	// A leg is at least that long, so that acts see several kinds of trouble,
	// and in a long soak at most.
	minLeg = 15 * time.Second
	maxLeg = time.Minute

	seedsOfLeg = 10 // more than it has acts
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
	redis.SetLogger(&logging.VoidLogger{}) // it tells of every trouble
	r := &report{out: stdout, start: time.Now()}
	err = soak(ctx, o, r)
	r.summary()
	if err != nil {
		fmt.Fprintf(stderr, "soak: %v\n", err)
	}
	if err != nil || r.broken > 0 {
		fmt.Fprintf(stderr, "soak: again with: go run ./internal/soak %v\n", o)
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.lasts, "for", 10*time.Minute, "how long there is trouble")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "what trouble there is, and what is asked; any if it is not given")
	flags.IntVar(&o.instances, "instances", 4, "how many instances share the limits")
	flags.StringVar(&o.only, "only", "", "standalone, sentinel or cluster; all if it is not given")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.instances < 1 || o.lasts <= 0 || flags.NArg() > 0 {
		return o, errors.New("want at least one instance, some time, and no arguments")
	}
	if len(o.topologies()) == 0 {
		return o, fmt.Errorf("no topology is called %q", o.only)
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

// soak goes through the topologies, again and again.
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
