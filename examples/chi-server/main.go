// Command chi-server is an API with a limit for each route. It limits in memory,
// or with -redis together with all other instances that use the same Redis:
//
//	go run ./examples/chi-server
//	curl -i http://127.0.0.1:8080/v1/orders/1
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
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground"
	"github.com/penstock-go/penstock/examples/chi-server/playground/redisurl"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/replay"
)

const (
	exitFailed      = 1 // the prefix, Redis, the address or a log cannot be used
	exitUsage       = 2
	shutdownTimeout = 10 * time.Second
	minToken        = 16 // bytes
)

type config struct {
	addr, prefix, adminToken string
	redis                    *redisurl.URL // nil: in memory
	deadline                 time.Duration // of Redis; 0 means the limiter's default
	instances                int           // that share Redis; 0 means that Redis counts them
	consoles                 []string      // URLs of /admin of all instances; none: this one answers for itself
	trusted                  []netip.Prefix
	headers                  headers.Dialect
	outage                   bool            // visitors of the page may simulate one of Redis
	logs                     *replay.Options // to replay, instead of serving
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	logging.Disable()            // go-redis's own log; the limiter reports errors
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run serves until ctx ends, or replays logs, and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "chi-server: %v\nUse -h for help.\n", err)
		return exitUsage
	}
	if len(c.logs.Files) > 0 {
		err = c.replay(ctx)
	} else {
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

// parse reads flags. It writes their usage to stderr for -h. The error names every
// bad value.
func parse(args []string, stderr io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("chi-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on this `host:port`")
	url := flags.String("redis", "", "share limits through the Redis at this `URL`; without it, limit in memory.\n"+
		"One server:  redis://user:password@host:6379/0, or rediss:// for TLS.\n"+
		"A Cluster:   redis://host:6379?addr=host2:6379, with one addr or more.\n"+
		"Sentinel:    redis://host:26379/0?master_name=mymaster&addr=host2:26379; password= is the server's.")
	flags.StringVar(&c.prefix, "prefix", "penstock", "begin the keys in Redis with this `text`")
	flags.IntVar(&c.instances, "instances", 0, "the `number` of instances that share Redis, until Redis has counted them; with an autoscaler, the most")
	trusted := flags.String("trusted-proxies", "", "read X-Forwarded-For from these `addresses` or CIDRs, separated by commas, and from no others")
	dialects := flags.String("headers", "draft,separate", "send these `dialects` of limit headers, separated by commas: draft, separate, x-ratelimit, milliseconds")
	flags.StringVar(&c.adminToken, "admin-token", "", "serve /admin/ to operators who send this `token` as Authorization: Bearer; 16 bytes or more")
	consoles := flags.String("consoles", "", "ask the consoles of all instances at these `URLs`, separated by commas, such as http://shop:8080/admin;\n"+
		"a host name stands for all of its addresses")
	flags.BoolVar(&c.outage, "demo-outage", false, "let visitors of / simulate an outage of Redis for their sandboxes; requires -redis")
	c.logs = replay.Flags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return c, err
	} else if err != nil {
		return c, err
	}
	var errs []error
	if len(c.logs.Files) > 0 {
		c.logs.Files = append(c.logs.Files, flags.Args()...)
	} else if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if c.redis, err = redisurl.Parse(*url); err != nil {
		errs = append(errs, fmt.Errorf("-redis: %w", err))
	}
	if c.outage && *url == "" {
		errs = append(errs, errors.New("-demo-outage requires -redis"))
	}
	if c.trusted, err = parsePrefixes(*trusted); err != nil {
		errs = append(errs, err)
	}
	if c.headers, err = headers.ParseDialect(*dialects); err != nil {
		errs = append(errs, fmt.Errorf("-headers: %s", strings.TrimPrefix(err.Error(), "headers: ")))
	}
	c.consoles = strings.FieldsFunc(*consoles, func(r rune) bool { return r == ',' || r == ' ' })
	if c.instances < 0 {
		errs = append(errs, fmt.Errorf("-instances %d: want 0 or more", c.instances))
	}
	if n := len(c.adminToken); n > 0 && n < minToken {
		errs = append(errs, fmt.Errorf("-admin-token has %d bytes: want %d or more", n, minToken))
	}
	return c, errors.Join(errs...)
}

func parsePrefixes(list string) (prefixes []netip.Prefix, err error) {
	for text := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		prefix, bad := netip.ParsePrefix(text)
		if a, notAddr := netip.ParseAddr(text); notAddr == nil {
			prefix, bad = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("-trusted-proxies %q: want addresses or CIDRs, e.g. 10.0.0.1 or 10.0.0.0/8", text))
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, err
}

// replay runs access logs through the routes and the limits of the API.
func (c config) replay(ctx context.Context) error {
	c.logs.Tiers = playground.Tiers()
	var a *api
	err := replay.Run(ctx, func(limiter algorithms.Limiter) (_ http.Handler, err error) {
		b := &backend{limiter: limiter, table: overrides.NewMemory()}
		if a, err = newAPI(ctx, c, b, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
		return a.router, nil
	}, c.logs)
	if a == nil {
		return err
	}
	return errors.Join(err, a.close(context.WithoutCancel(ctx)))
}

// serve listens until ctx ends, and then lets requests finish.
func (c config) serve(ctx context.Context, log *slog.Logger) error {
	b, err := newBackend(ctx, c, log)
	if err != nil {
		return err
	}
	a, err := newAPI(ctx, c, b, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return errors.Join(fmt.Errorf("-addr: %w", err), a.close(ctx))
	}
	server := &http.Server{
		Handler:                      a.router,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second, // there is no WriteTimeout, because the page's streams last longer
		IdleTimeout:                  2 * time.Minute,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		DisableGeneralOptionsHandler: true, // net/http would answer OPTIONS * without a limit
	}
	server.RegisterOnShutdown(a.release)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("listening", "url", "http://"+listener.Addr().String(), "limiter", fmt.Sprintf("%T", b.limiter), "page", "/", "status", "/status", "metrics", "/metrics")
	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("shutting down")
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx), a.close(ctx))
}
