package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func main() {
	out := flag.String("o", "", "write RESULTS.md into this `folder`")
	only := flag.String("only", "", "try libraries and promises whose names match this `regexp` only, and print them")
	heap := flag.Bool("heap", false, "print how much memory the keys of the library NAME STORE take")
	stepping := flag.Bool("steps", false, "step the clocks under the library NAME STORE, and print the verdict")
	stepped := flag.String("stepped", "", "run a `program` in repro whose clock it steps itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logging.Disable() // go-redis writes many lines in an outage
	var err error
	switch {
	case *heap:
		err = child(measureHeap)
	case *stepped != "":
		err = runStepped(ctx, *stepped)
	case *stepping:
		err = child(steps)
	default:
		err = run(ctx, *only, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, out string) error {
	begin := time.Now()
	matching, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	cells := judge(ctx, matching)
	reproduce(ctx, cells)
	for _, c := range cells {
		fmt.Printf("%-24s %-7s %-13s %s %s\n", c.library.name, c.library.store, c.promise.name, c.colour, c.what)
	}
	fmt.Println("took", time.Since(begin).Round(time.Second))
	if out == "" || only != "" {
		return nil
	}
	for _, c := range cells {
		if c.err != nil || c.colour == "error" {
			return fmt.Errorf("%s (%s), %s: %s", c.library.name, c.library.store, c.promise.name, c.what)
		}
	}
	text, err := page(ctx, cells, redisVersion())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(text), 0o644)
}

// child runs a part of a trial that needs a process of its own.
func child(part func(*trial) error) error {
	owner := nottest.NewOwner()
	defer owner.Close()
	for _, l := range contestants {
		if l.name == flag.Arg(0) && l.store == flag.Arg(1) {
			var err error
			failed := owner.Do(func() { err = part(&trial{library: l, owner: owner}) })
			return errors.Join(failed, err)
		}
	}
	return fmt.Errorf("there is no library %q", flag.Args())
}

// redisVersion returns the version of the redis-server that trials start.
func redisVersion() (version string) {
	owner := nottest.NewOwner()
	defer owner.Close()
	_ = owner.Do(func() {
		version = redistest.Start(owner).Client().InfoMap(owner.Context(), "server").Item("Server", "redis_version")
	})
	return version
}
