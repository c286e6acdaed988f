package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// maxLeg is the length of a leg at most. A longer soak has more legs.
const maxLeg = time.Minute

func main() {
	lasts := flag.Duration("for", 10*time.Minute, "total `time` of the trouble")
	seed := flag.Uint64("seed", rand.Uint64N(1_000_000), "`seed` of the trouble and of the calls, otherwise random")
	only := flag.String("only", "", "only this `topology`: standalone, sentinel or cluster; otherwise all")
	flag.Parse()
	possible := topologies(*only)
	if len(possible) == 0 || *lasts <= 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logging.Disable() // go-redis would log every trouble
	r := &report{out: os.Stdout, start: time.Now()}
	err := soak(ctx, possible, *lasts, *seed, r)
	r.summary()
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
	}
	if err != nil || r.broken > 0 {
		fmt.Fprintf(os.Stderr, "soak: repeat with: go -C internal/lab run ./soak -for %v -seed %d -only %q\n", *lasts, *seed, *only)
		os.Exit(1)
	}
}

// soak goes through the topologies, one leg after the other.
func soak(ctx context.Context, possible []kind, lasts time.Duration, seed uint64, r *report) error {
	rounds := max(1, int(lasts/(2*maxLeg*time.Duration(len(possible)))))
	length := lasts / time.Duration(rounds*2*len(possible))
	for range rounds {
		for _, k := range possible {
			for _, loses := range []bool{false, true} {
				l := &leg{report: r, name: k.name, loses: loses, seed: seed}
				if err := l.run(ctx, k.start, length); err != nil {
					return fmt.Errorf("%s: %w", l, err)
				}
				seed++
			}
		}
	}
	return nil
}
