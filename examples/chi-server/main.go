// Command chi-server is an API with a limit for each route. It limits in memory,
// or with -redis together with all other instances that use the same Redis:
//
//	go run ./examples/chi-server
//	curl -i http://127.0.0.1:8080/v1/orders/1
//
// With -hammer it is a load client that waits as the server asks:
//
//	go run ./examples/chi-server -hammer http://127.0.0.1:8080/v1/orders/1
//
// With -replay it runs an access log through the limits, and proposes others:
//
//	go run ./examples/chi-server -replay access.log
//
// limits.go has all limits. The page at / shows in a browser how they work.
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
)

const (
	exitFailed = 1 // the prefix, Redis or the address cannot be used
	exitUsage  = 2

	shutdownTimeout = 10 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	logging.Disable()            // go-redis's own log; the limiter reports errors
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run serves until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\nUse -h for help.\n", err)
		return exitUsage
	}
	switch {
	case c.hammer != "":
		err = hammer(ctx, c.hammer, stderr)
	case len(c.replay.Files) > 0:
		err = c.replayLogs(ctx, os.Stdin, os.Stdout, stderr)
	default:
		log := slog.New(slog.NewTextHandler(stderr, nil))
		slog.SetDefault(log) // the console logs there
		err = c.serve(ctx, log)
	}
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\n", err)
		return exitFailed
	}
	return 0
}

// serve listens until ctx ends, and then lets requests finish.
func (c config) serve(ctx context.Context, log *slog.Logger) error {
	if c.accessLog != "" {
		var err error
		if c.log, err = newAccessLog(c.accessLog, c.clientIP()); err != nil {
			return fmt.Errorf("-access-log: %w", err)
		}
	}
	a, err := newAPI(ctx, c, log)
	if err != nil {
		return errors.Join(err, c.log.close())
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: choose another port", err)
		}
		return errors.Join(fmt.Errorf("-addr: %w", err), a.close(ctx), c.log.close())
	}
	server := &http.Server{
		Handler:           a.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // there is no WriteTimeout, because the page's streams last longer
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // net/http would answer OPTIONS * without a limit
	}
	server.RegisterOnShutdown(a.release)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("listening", "url", "http://"+listener.Addr().String(), "limiter", fmt.Sprintf("%T", a.backend.limiter),
		"page", "/", "status", "/status", "metrics", "/metrics")

	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("shutting down")
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx), a.close(ctx), c.log.close())
}
