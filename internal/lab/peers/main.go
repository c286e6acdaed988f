package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9/logging"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if *name == "" {
		err = run(ctx, *only, *out)
	} else if line, failed := child(ctx, "repro", *name); confirms(failed) {
		fmt.Printf("%sconfirmed\n", line)
	} else {
		err = fmt.Errorf("%snot confirmed: %v", line, failed)
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
	text, err := page(ctx, cells)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(text), 0o644)
}
