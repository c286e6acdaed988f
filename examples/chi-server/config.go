// The flags.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/replay"
	"github.com/penstock-go/penstock/headers"
)

// A config holds the values of the flags.
type config struct {
	addr       string
	redis      *redisURL // nil: in memory
	prefix     string
	trusted    []netip.Prefix
	headers    headers.Dialect
	overrides  []override
	adminToken string          // empty: there is no /admin/
	demoOutage bool            // the page at / may simulate an outage of Redis
	hammer     string          // a URL to send requests to, instead of serving
	accessLog  string          // a file for -replay; empty: none
	log        *accessLog      // of that file
	replay     *replay.Options // logs to replay, instead of serving; nil: none
	engine     *replay.Engine  // decides instead of a backend; nil: the server serves
}

const minToken = 16 // bytes

// parse reads flags. It writes their usage to stderr for -h. The error names every
// bad value.
func parse(args []string, stderr io.Writer) (config, error) {
	flags := flag.NewFlagSet("chi-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to listen on")
	redisURL := flags.String("redis", "", "`URL` of Redis, as go-redis reads it; empty: limit in memory.\n"+
		"one server:  redis://user:password@host:6379/0, or rediss:// for TLS\n"+
		"a Cluster:   redis://host:6379?addr=host2:6379&addr=host3:6379, at least one addr\n"+
		"Sentinel:    redis://host:26379/0?master_name=mymaster&addr=host2:26379, password= is the server's")
	prefix := flags.String("prefix", "penstock", "`prefix` of the keys in Redis")
	trusted := flags.String("trusted-proxies", "", "comma-separated addresses or `CIDRs` of your proxies; X-Forwarded-For is read from them only")
	dialect := flags.String("headers", "draft,separate", "comma-separated `families` of limit headers: draft, separate, x-ratelimit")
	overridden := flags.String("override", "", "comma-separated `KEY=LIMITs` of API keys for charges, e.g. demo-free=10/1m; each replaces the limit of the plan")
	adminToken := flags.String("admin-token", "", "`token` of 16 bytes or more that operators send as Authorization: Bearer to /admin/; empty: there is no /admin/")
	demoOutage := flags.Bool("demo-outage", false, "let visitors of / simulate an outage of Redis, which reaches only the sandboxes there; needs -redis")
	hammer := flags.String("hammer", "", "send requests to a `URL` until interrupted, instead of serving; e.g. http://127.0.0.1:8080/v1/orders/1")
	accessLog := flags.String("access-log", "", "write JSON lines to a `file` that -replay decides exactly as the server did; the server then decides one request at a time")
	replayed := flags.String("replay", "", "replay an access `log` through the limits, instead of serving; further files may follow the flags, - is the standard input")
	replays := replay.Flags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
		}
		return config{}, err
	}
	c := config{addr: *addr, prefix: *prefix, adminToken: *adminToken, demoOutage: *demoOutage, hammer: *hammer, accessLog: *accessLog}
	var errs, err error
	if *replayed != "" {
		c.replay, replays.Files = replays, append([]string{*replayed}, flags.Args()...)
		errs = replays.Validate()
	} else {
		if flags.NArg() > 0 {
			errs = fmt.Errorf("unexpected argument %q", flags.Arg(0))
		}
		flags.Visit(func(f *flag.Flag) {
			if strings.HasPrefix(f.Usage, "replay: ") {
				errs = errors.Join(errs, fmt.Errorf("-%s: want -replay, too", f.Name))
			}
		})
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
			errs = errors.Join(errs, fmt.Errorf("-override %d: %w", i+1, err))
		}
		key, err := account.Of(&http.Request{Header: http.Header{"X-Api-Key": {apiKey}}})
		if err != nil {
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
