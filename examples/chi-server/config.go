// The flags.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/replay"
)

// A config holds the values of the flags.
type config struct {
	addr       string
	redis      *redisURL // nil: in memory
	prefix     string
	trusted    []netip.Prefix
	headers    headers.Dialect
	overrides  []override
	adminToken string             // empty: there is no /admin/
	demoOutage bool               // the page at / may simulate an outage of Redis
	hammer     string             // a URL to send requests to, instead of serving
	accessLog  string             // a file for -replay; empty: none
	log        *accessLog         // of that file
	replay     *replay.Options    // of logs to replay, instead of serving
	limiter    algorithms.Limiter // of a replay; nil: the backend's
}

const minToken = 16 // bytes

// values are the texts of the flags.
type values struct {
	addr, redis, prefix, trusted, headers, overrides, adminToken string
	hammer, accessLog                                            string
	demoOutage                                                   bool
	replays                                                      *replay.Options
}

func defineFlags(flags *flag.FlagSet) *values {
	v := &values{replays: replay.Flags(flags)}
	flags.StringVar(&v.addr, "addr", "127.0.0.1:8080", "listen on this `host:port`")
	flags.StringVar(&v.redis, "redis", "", "share limits through the Redis at this `URL`; without it, limit in memory.\n"+
		"One server:  redis://user:password@host:6379/0, or rediss:// for TLS.\n"+
		"A Cluster:   redis://host:6379?addr=host2:6379, with one addr or more.\n"+
		"Sentinel:    redis://host:26379/0?master_name=mymaster&addr=host2:26379; password= is the server's.")
	flags.StringVar(&v.prefix, "prefix", "penstock", "begin the keys in Redis with this `text`")
	flags.StringVar(&v.trusted, "trusted-proxies", "", "read X-Forwarded-For from these `addresses` or CIDRs, separated by commas, and from no others")
	flags.StringVar(&v.headers, "headers", "draft,separate", "send these `dialects` of limit headers, separated by commas: draft, separate, x-ratelimit")
	flags.StringVar(&v.overrides, "override", "", "replace the limits of API keys for charges by these `KEY=LIMIT` pairs, separated by commas, e.g. demo-free=10/1m")
	flags.StringVar(&v.adminToken, "admin-token", "", "serve /admin/ to operators who send this `token` as Authorization: Bearer; 16 bytes or more")
	flags.BoolVar(&v.demoOutage, "demo-outage", false, "let visitors of / simulate an outage of Redis for their sandboxes; requires -redis")
	flags.StringVar(&v.hammer, "hammer", "", "send requests to this `URL` until interrupted, instead of serving")
	flags.StringVar(&v.accessLog, "access-log", "", "write JSON lines to this `file`. The server then decides one request at a time, and -replay decides the lines exactly as the server did")
	return v
}

// parse reads flags. It writes their usage to stderr for -h. The error names every
// bad value.
func parse(args []string, stderr io.Writer) (config, error) {
	flags := flag.NewFlagSet("chi-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	v := defineFlags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(stderr, flags)
		}
		return config{}, err
	}
	c := config{addr: v.addr, prefix: v.prefix, adminToken: v.adminToken, demoOutage: v.demoOutage, hammer: v.hammer, accessLog: v.accessLog}
	var errs, err error
	if c.replay = v.replays; len(c.replay.Files) > 0 {
		c.replay.Files = append(c.replay.Files, flags.Args()...)
		if v.overrides != "" && v.replays.PoliciesFile != "" {
			errs = errors.Join(errs, errors.New("-override and -policies cannot be combined: write the limit into the file"))
		}
	} else if flags.NArg() > 0 {
		errs = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) {
		switch replays := len(c.replay.Files) > 0; {
		case !replays && slices.Contains(replayFlags, f.Name):
			errs = errors.Join(errs, fmt.Errorf("-%s requires -replay", f.Name))
		case replays && (f.Name == "hammer" || slices.Contains(servingFlags, f.Name)):
			errs = errors.Join(errs, fmt.Errorf("-%s cannot be combined with -replay, which serves nothing", f.Name))
		case replays && slices.Contains(redisFlags, f.Name):
			errs = errors.Join(errs, fmt.Errorf("-%s cannot be combined with -replay, which limits in memory", f.Name))
		}
	})
	if _, port, err := net.SplitHostPort(c.addr); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-addr %q: want host:port, e.g. 127.0.0.1:8080", c.addr))
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-addr %q: want a port from 0 to 65535", c.addr))
	}
	if v.redis != "" {
		if c.redis, err = parseRedis(v.redis); err != nil {
			errs = errors.Join(errs, fmt.Errorf("-redis: %w", err))
		}
	}
	if c.demoOutage && v.redis == "" {
		errs = errors.Join(errs, errors.New("-demo-outage requires -redis"))
	}
	if c.trusted, err = parsePrefixes(v.trusted); err != nil {
		errs = errors.Join(errs, err)
	}
	if c.headers, err = headers.ParseDialect(v.headers); err != nil {
		errs = errors.Join(errs, fmt.Errorf("-headers: %s", strings.TrimPrefix(err.Error(), "headers: ")))
	}
	if c.overrides, err = parseOverrides(v.overrides); err != nil {
		errs = errors.Join(errs, err)
	}
	if u, err := url.Parse(c.hammer); c.hammer != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = errors.Join(errs, fmt.Errorf("-hammer %q: want a URL, e.g. http://127.0.0.1:8080/v1/orders/1", c.hammer))
	}
	if n := len(c.adminToken); n > 0 && n < minToken {
		errs = errors.Join(errs, fmt.Errorf("-admin-token has %d bytes: want %d or more", n, minToken))
	}
	return c, errs
}

// parseOverrides reads KEY=LIMIT,KEY=LIMIT. Its errors contain no API keys.
func parseOverrides(list string) ([]override, error) {
	if list == "" {
		return nil, nil
	}
	var overrides []override
	var errs error
	for i, text := range strings.Split(list, ",") {
		apiKey, limit, _ := strings.Cut(strings.TrimSpace(text), "=")
		l, err := algorithms.ParseLimit(limit)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("-override %d: %q is not a limit: want REQUESTS/WINDOW, e.g. 10/1m", i+1, limit))
		}
		key, err := account.Of(&http.Request{Header: http.Header{"X-Api-Key": {apiKey}}})
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("-override %d: unknown API key: want one of %s", i+1, strings.Join(slices.Sorted(maps.Keys(accounts)), ", ")))
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
		text = strings.TrimSpace(text)
		if a, err := netip.ParseAddr(text); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("-trusted-proxies %q: want addresses or CIDRs, e.g. 10.0.0.1 or 10.0.0.0/8", text))
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, errs
}
