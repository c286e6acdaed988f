// Command chi-server is an API whose routes are limited by penstock, each by
// another algorithm. It runs in memory, or with -redis together with all other
// instances that use the same Redis:
//
//	go run ./examples/chi-server
//	curl -i http://127.0.0.1:8080/v1/orders/1
//
// With a browser, / is a page that shows what the limits do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/examples/chi-server/demo"
)

const (
	exitFailed = 1 // the prefix or Redis is not fit for it, or the address cannot be had
	exitUsage  = 2

	shutdownTimeout = 10 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	logging.Disable()            // of go-redis: limiters report what fails
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run serves until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	c, err := parse(args, os.Getenv("PENSTOCK_SECRET"), stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\nUse -h for help.\n", err)
		return exitUsage
	}
	return c.run(ctx, stderr)
}

func (c config) run(ctx context.Context, stderr io.Writer) int {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if c.demoSecret {
		log.Warn("PENSTOCK_SECRET is not set: API keys are hashed with a demo value that everybody knows")
	}
	w, err := newWatch(log)
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\n", err)
		return exitFailed
	}
	b, err := newBackend(ctx, c, w)
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\n", err)
		return exitFailed
	}
	defer b.close()
	page, err := newDemo(c)
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\n", err)
		return exitFailed
	}
	defer page.Close()
	if err := serve(ctx, c, b, page, w); err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\n", err)
		return exitFailed
	}
	return 0
}

// A backend is where limits count, and what operators have changed of them.
type backend struct {
	limiter algorithms.Limiter
	table   table
	close   func() error
}

// newBackend returns one in Redis, or in memory if none is configured.
func newBackend(ctx context.Context, c config, w *watch) (*backend, error) {
	if c.redis != nil {
		return newShared(ctx, c, w)
	}
	memory := algorithms.NewMemory(nil)
	return &backend{memory, overrides.NewMemory(), func() error { return nil }}, w.limiter("memory", memory)
}

// serve listens until ctx ends, and then lets requests finish.
func serve(ctx context.Context, c config, b *backend, page *demo.Demo, w *watch) error {
	handler, limits, err := newAPI(b, page, c, w)
	if err != nil {
		return err
	}
	if err := limits.override(ctx, c, b.table); err != nil {
		w.log.Error("the overrides of -override could not be set", "error", err)
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	w.log.Info("listening", "url", "http://"+listener.Addr().String(), "limiter", fmt.Sprintf("%T", b.limiter))

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	w.log.Info("shutting down")
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	// Middlewares first: Shutdown would wait for the requests they hold. And
	// last: what is served until then settles when it ends.
	return errors.Join(limits.close(ctx), page.End(ctx), server.Shutdown(ctx), limits.close(ctx))
}
