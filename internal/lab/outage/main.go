package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

func main() {
	out := flag.String("o", ".", "the `folder` for outage.svg and RESULTS.md")
	story := flag.String("story", "", "record the story of the example's page into this `file` instead")
	flag.Parse()
	logging.Disable() // go-redis would log each failure
	command.Main("outage", func(ctx context.Context) error {
		if *story != "" {
			return record(ctx, *story)
		}
		return measure(ctx, full, *out)
	})
}

// measure runs all contestants at the same time, and writes the picture and the page.
func measure(ctx context.Context, p plan, out string) error {
	results, version, err := run(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "outage.svg"), []byte(picture(p, results)), 0o644),
		os.WriteFile(filepath.Join(out, "RESULTS.md"), []byte(report(p, results, version)), 0o644))
}

// run returns the answers of each contestant, and the version of Redis.
func run(ctx context.Context, p plan) (results [][]answer, version string, err error) {
	err = nottest.Run(func(owner *nottest.Owner) {
		server := redistest.Start(owner)
		version = server.Client().InfoMap(ctx, "server").Item("Server", "redis_version")
		network := redistest.StartProxy(owner, server.Addr())
		results = make([][]answer, len(contestants))
		begin := time.Now()
		var all sync.WaitGroup
		for i, c := range contestants {
			first, second := serve(owner, c, network.Addr()), serve(owner, c, network.Addr())
			all.Go(func() { results[i] = load(ctx, begin, p, first, second) })
		}
		trouble(ctx, begin, p, server, network)
		all.Wait()
	})
	return results, version, errors.Join(err, ctx.Err())
}

// serve starts an instance of a contestant, and returns its URL.
func serve(owner *nottest.Owner, c contestant, redis string) string {
	handler, err := c.handle(redis, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served\n") }))
	if err != nil {
		owner.Fatalf("%s: %v", c.name, err)
	}
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers panic in an outage
	s.Start()
	owner.Cleanup(s.Close)
	return s.URL
}

// trouble kills Redis, starts it again behind a slow network, makes the network fast, and lets it stall.
func trouble(ctx context.Context, begin time.Time, p plan, server *redistest.Server, network *redistest.Proxy) {
	wait := func(until time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(begin.Add(until))):
		}
	}
	wait(p.killed)
	network.Set(redistest.Refuse())
	server.Kill()
	wait(p.started)
	server.Restart()
	network.Set(redistest.Delay(p.delay))
	wait(p.healed)
	network.Set(redistest.Pass())
	const step = 5 * time.Millisecond
	for at := p.stalls; at < p.end; at += time.Second {
		for held := time.Duration(0); held < p.stall; held += step {
			wait(at + held)
			network.Set(redistest.Delay(p.stall - held))
		}
		wait(at + p.stall)
		network.Set(redistest.Pass())
	}
}
