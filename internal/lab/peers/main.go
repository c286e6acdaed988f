package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

func main() {
	out := flag.String("o", "", "write RESULTS.md into this `folder`")
	only := flag.String("only", "", "try libraries and promises whose names match this `regexp` only, and print them")
	name := flag.String("repro", "", "run the reproduction of a red cell, such as httprate-keys")
	inChild := flag.Bool("child", false, "the program itself runs a part of its work in a process of its own")
	flag.Parse()
	logging.Disable() // go-redis writes lines when a trial's redis-server ends
	if *inChild {
		os.Exit(runChild(flag.Args()))
	}
	command.Main("peers", func(ctx context.Context) error {
		if *name == "" {
			return run(ctx, *only, *out)
		}
		line, failed := child(ctx, "repro", *name)
		if !confirms(failed) {
			return fmt.Errorf("%snot confirmed: %v", line, failed)
		}
		fmt.Printf("%sconfirmed\n", line)
		return nil
	})
}

func run(ctx context.Context, only, out string) error {
	begin := time.Now()
	matching, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	cells := judge(ctx, matching)
	for _, c := range cells {
		fmt.Printf("%-24s %-7s %-13s %s %s\n", c.library.name, c.library.store, c.promise.name, c.Colour, c.What)
		if c.Colour == failed {
			err = fmt.Errorf("%s (%s), %s: %s", c.library.name, c.library.store, c.promise.name, c.What)
		}
	}
	fmt.Println("took", time.Since(begin).Round(time.Second))
	if err != nil || out == "" || only != "" {
		return err
	}
	return nottest.Run(func(*nottest.Owner) {
		nottest.Check(os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(page(ctx, cells)), 0o644))
	})
}
