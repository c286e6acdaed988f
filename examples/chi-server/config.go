package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// config is what flags and the environment say.
type config struct {
	addr       string
	redis      *redisURL     // nil: in memory
	openFor    time.Duration // that the limiter leaves Redis alone; zero: its default
	prefix     string
	trusted    []netip.Prefix
	headers    headers.Dialect
	secret     []byte
	demoSecret bool
}

const (
	demoSecret = "a demo secret that everybody knows"
	minSecret  = 16 // bytes, as keyfunc.APIKey wants them
)

// parse reads flags, and the secret of the environment. It writes the flags'
// usage to stderr when asked for it; the error names every bad value.
func parse(args []string, secret string, stderr io.Writer) (config, error) {
	flags := flag.NewFlagSet("chi-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to listen on")
	redisURL := flags.String("redis", "", "`URL` of Redis, e.g. redis://127.0.0.1:6379/0, "+
		"redis+sentinel://MASTER@host:port,host:port/0 or redis+cluster://host:port,host:port; empty: limit in memory")
	prefix := flags.String("prefix", "penstock", "`prefix` of the keys in Redis")
	trusted := flags.String("trusted-proxies", "", "comma-separated `CIDRs` of the proxies whose X-Forwarded-For is believed")
	dialect := flags.String("headers", "draft,triple", "comma-separated `families` of limit headers: draft, triple, x")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
		}
		return config{}, err
	}
	c := config{addr: *addr, prefix: *prefix, secret: []byte(secret)}
	var errs, err error
	if flags.NArg() > 0 {
		errs = errors.Join(errs, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if _, _, err = net.SplitHostPort(c.addr); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-addr %q: want host:port", c.addr))
	}
	if *redisURL != "" {
		if c.redis, err = parseRedis(*redisURL); err != nil {
			errs = errors.Join(errs, fmt.Errorf("-redis: %w", err))
		}
	}
	if c.trusted, err = parsePrefixes(*trusted); err != nil {
		errs = errors.Join(errs, err)
	}
	if c.headers, err = headers.ParseDialect(*dialect); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-headers: %w", err))
	}
	switch {
	case secret == "":
		c.secret, c.demoSecret = []byte(demoSecret), true
	case len(secret) < minSecret:
		errs = errors.Join(errs, fmt.Errorf("PENSTOCK_SECRET has %d bytes: want %d or more", len(secret), minSecret))
	}
	return c, errs
}

func parsePrefixes(list string) ([]netip.Prefix, error) {
	if list == "" {
		return nil, nil
	}
	var prefixes []netip.Prefix
	var errs error
	for _, text := range strings.Split(list, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("-trusted-proxies %q: want CIDRs, e.g. 10.0.0.0/8", text))
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, errs
}
