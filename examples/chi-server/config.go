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

	"github.com/penstock-go/penstock/algorithms"
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
	overrides  []override
	adminToken string // empty: there is no /admin/
	demoOutage bool   // the page at / may take Redis away from its sandboxes
}

// An override is a limit of one API key at the start.
type override struct {
	apiKey string
	limit  algorithms.Limit
}

const (
	demoSecret = "a demo secret that everybody knows"
	minSecret  = 16 // bytes, as keyfunc.APIKey wants them
	minToken   = 16 // bytes
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
	overridden := flags.String("override", "", "comma-separated `KEY=LIMITs` of API keys for charges, e.g. demo-free=10/1m; each replaces that of its plan")
	adminToken := flags.String("admin-token", "", "`token` of 16 bytes or more that operators send as Authorization: Bearer to /admin/; empty: there is no /admin/")
	demoOutage := flags.Bool("demo-outage", false, "let visitors of / take Redis away from the sandboxes there, and from nothing else; needs -redis")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
		}
		return config{}, err
	}
	c := config{
		addr: *addr, prefix: *prefix, secret: []byte(secret), adminToken: *adminToken, demoOutage: *demoOutage,
	}
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
	if c.demoOutage && *redisURL == "" {
		errs = errors.Join(errs, errors.New("-demo-outage: want -redis, too"))
	}
	if c.trusted, err = parsePrefixes(*trusted); err != nil {
		errs = errors.Join(errs, err)
	}
	if c.headers, err = headers.ParseDialect(*dialect); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-headers: %w", err))
	}
	if c.overrides, err = parseOverrides(*overridden); err != nil {
		errs = errors.Join(errs, err)
	}
	if n := len(c.adminToken); n > 0 && n < minToken {
		errs = errors.Join(errs, fmt.Errorf("-admin-token has %d bytes: want %d or more", n, minToken))
	}
	switch {
	case secret == "":
		c.secret, c.demoSecret = []byte(demoSecret), true
	case len(secret) < minSecret:
		errs = errors.Join(errs, fmt.Errorf("PENSTOCK_SECRET has %d bytes: want %d or more", len(secret), minSecret))
	}
	return c, errs
}

// parseOverrides reads KEY=LIMIT,KEY=LIMIT. Its errors do not show keys.
func parseOverrides(list string) ([]override, error) {
	if list == "" {
		return nil, nil
	}
	var overrides []override
	var errs error
	for i, text := range strings.Split(list, ",") {
		key, limit, _ := strings.Cut(strings.TrimSpace(text), "=")
		l, err := algorithms.ParseLimit(limit)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("-override %d: %w", i+1, err))
		}
		if !known(key) {
			errs = errors.Join(errs, fmt.Errorf("-override %d: the API key is not known", i+1))
		}
		overrides = append(overrides, override{key, l})
	}
	return overrides, errs
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
