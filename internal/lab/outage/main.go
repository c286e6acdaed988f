package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// silent drops the lines of handlers that panic, and those of go-redis are dropped by logging.Disable: there are many
// in an outage.
var silent = log.New(io.Discard, "", 0)

func main() {
	quick := flag.Bool("quick", false, "run for 6 s instead of a minute")
	out := flag.String("o", ".", "the `folder` for outage.svg and RESULTS.md")
	story := flag.String("story", "", "record the story of the example's page into this `file` instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logging.Disable()
	p := full
	if *quick {
		p = full.scaled(10)
	}
	var err error
	if *story != "" {
		err = record(ctx, *story)
	} else {
		err = measure(ctx, p, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

// measure runs all contestants at the same time, and writes the picture and the page.
func measure(ctx context.Context, p plan, out string) error {
	results, version, err := run(ctx, p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "outage.svg"), []byte(picture(p, results)), 0o644); err != nil {
		return err
	}
	text, err := report(p, results, version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(text), 0o644)
}

// run returns the answers of each contestant, and the version of Redis.
func run(ctx context.Context, p plan) (results [][]answer, version string, err error) {
	owner := nottest.NewOwner()
	defer owner.Close()
	var server *redistest.Server
	if err := owner.Do(func() { server = redistest.Start(owner) }); err != nil {
		return nil, "", err
	}
	if version, err = versionOf(ctx, server); err != nil {
		return nil, "", err
	}
	way, err := newNetwork(server.Addr())
	if err != nil {
		return nil, "", err
	}
	defer way.cut()
	instances := make([][]*instance, len(contestants))
	for i, c := range contestants {
		for range 2 {
			one, err := serve(c, way.addr)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", c.name, err)
			}
			defer one.server.Close()
			instances[i] = append(instances[i], one)
		}
	}
	results = make([][]answer, len(contestants))
	begin := time.Now()
	var all sync.WaitGroup
	for i := range contestants {
		all.Go(func() { results[i] = load(ctx, begin, p, instances[i]) })
	}
	err = trouble(ctx, begin, p, owner, server, way)
	all.Wait()
	return results, version, errors.Join(err, ctx.Err())
}

// trouble kills Redis, starts it again behind a slow network, makes the network fast, and lets it stall.
func trouble(ctx context.Context, begin time.Time, p plan, owner *nottest.Owner, server *redistest.Server, way *network) error {
	wait := func(until time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(begin.Add(until))):
		}
	}
	wait(p.killed)
	way.cut()
	if err := owner.Do(server.Kill); err != nil {
		return err
	}
	wait(p.started)
	if err := owner.Do(server.Restart); err != nil {
		return err
	}
	if err := way.connect(p.delay); err != nil {
		return err
	}
	wait(p.healed)
	if err := way.connect(0); err != nil {
		return err
	}
	for at := p.stalls; at < p.end; at += time.Second {
		wait(at)
		way.stall(p.stall)
	}
	return nil
}

func versionOf(ctx context.Context, server *redistest.Server) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	info := client.InfoMap(ctx, "server")
	if err := info.Err(); err != nil {
		return "", err
	}
	return info.Item("Server", "redis_version"), nil
}
