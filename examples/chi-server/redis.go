// The limiter that instances share through Redis.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware/overrides"
)

const (
	readyTimeout = 3 * time.Second
	readyEvery   = 20 * time.Millisecond

	// readTimeout frees the connections to a Redis that hangs, unless the URL has
	// another read_timeout.
	readTimeout = 500 * time.Millisecond
	// dials is 1, because the limiter tries again by itself. With more dials, a
	// call would end before it learns why Redis is unavailable.
	dials = 1
)

// A redisURL is a parsed -redis.
type redisURL struct {
	addrs string // without a password, for messages
	open  func() redis.UniversalClient
}

var (
	errRedisURL = errors.New("want redis://host:port, e.g. redis://127.0.0.1:6379")
	// errPassword does not quote the URL, which may have a part of the password in any place.
	errPassword = errors.New("want redis://user:password@host:port/db, with %40 for @ in the password, %2F for / and so on")
)

// parseRedis reads a URL with a parser of go-redis. A URL with master_name names
// sentinels, a URL with addr names a Cluster, and any other URL names one server.
// The error contains no part of a password.
func parseRedis(text string) (*redisURL, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" && parsed.Scheme != "unix" {
		return nil, redisURLError(text, errRedisURL)
	}
	if !slices.Contains([]string{"redis", "rediss", "unix"}, parsed.Scheme) {
		return nil, redisURLError(text, fmt.Errorf("the scheme is %s://: want redis://, or rediss:// for TLS", parsed.Scheme))
	}
	var r *redisURL
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		r, err = parseSentinels(text)
	case query.Has("addr"):
		r, err = parseCluster(text)
	default:
		r, err = parseServer(text)
	}
	if err != nil {
		return nil, redisURLError(text, err)
	}
	return r, nil
}

// redisURLError returns err. If the text may have a password, err might quote a part
// of it, so the error then says only what to write.
func redisURLError(text string, err error) error {
	if strings.Contains(text, "@") {
		return errPassword
	}
	return errors.New(strings.TrimPrefix(err.Error(), "redis: "))
}

func parseServer(text string) (*redisURL, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
	return &redisURL{o.Addr, func() redis.UniversalClient { return redis.NewClient(o) }}, nil
}

func parseCluster(text string) (*redisURL, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, err
	}
	o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
	return &redisURL{strings.Join(o.Addrs, ","), func() redis.UniversalClient { return redis.NewClusterClient(o) }}, nil
}

func parseSentinels(text string) (*redisURL, error) {
	o, err := redis.ParseFailoverURL(text)
	if err != nil {
		return nil, err
	}
	o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
	return &redisURL{strings.Join(o.SentinelAddrs, ","), func() redis.UniversalClient { return redis.NewFailoverClient(o) }}, nil
}

// newShared returns a backend in Redis. If Redis is unavailable, the server serves
// all the same, and the limiter recovers by itself. Only a misconfiguration is an
// error.
func newShared(ctx context.Context, c config, w *watch) (*backend, error) {
	rdb := c.redis.open()
	limiter, err := shared.New(rdb, &shared.Options{
		Prefix: c.prefix, Logger: w.log.With("redis", c.redis.addrs), Now: c.log.clock(),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-prefix: %s", strings.TrimPrefix(err.Error(), "shared: ")), rdb.Close())
	}
	var misconfigured *shared.Misconfiguration
	err = ready(ctx, limiter)
	if errors.As(err, &misconfigured) {
		_, _ = limiter.Close(), rdb.Close() // they fail for the same reason
		return nil, fmt.Errorf("cannot use Redis at %s: %w (%s)", c.redis.addrs, misconfigured.Cause, advice(misconfigured))
	}
	if err != nil {
		w.log.Warn("Redis not ready", "redis", c.redis.addrs, "error", err) // with a hint, which the limiter's lines lack
	}
	table, err := overrides.NewRedis(rdb, &overrides.RedisOptions{Prefix: c.prefix, Logger: w.log})
	if err != nil {
		return nil, errors.Join(err, limiter.Close(), rdb.Close())
	}
	closeAll := func() error { return errors.Join(table.Close(), limiter.Close(), rdb.Close()) }
	return &backend{c.log.of(limiter), table, closeAll}, nil
}

// inURL says how to correct -redis, by the faults that a URL can correct.
var inURL = map[string]string{
	"cluster":     "the server is a node of a Redis Cluster: add another node to the URL, as in redis://host:6379?addr=host2:6379",
	"standalone":  "the server is not in a Redis Cluster: leave addr out of the URL, except with master_name",
	"sentinel":    "add the name of the master to the URL, as in redis://host:26379/0?master_name=mymaster",
	"master":      "correct master_name in the URL: redis-cli -p 26379 sentinel masters lists the names",
	"plaintext":   "write redis://, or connect to the server's tls-port",
	"certificate": "the environment variable SSL_CERT_FILE can name a file with the issuer of the server's certificate; set tls-auth-clients no in the server, because -redis has no certificate of its own",
	"password":    "write redis://user:password@host:port, where user may be empty; with master_name, add username= and password= of the server",
	"login":       "check the user and the password in the URL, with %40 for @, %2F for / and so on, and that the server has that user and has enabled it",
}

// advice returns what to do about a misconfiguration.
func advice(m *shared.Misconfiguration) string { return cmp.Or(inURL[m.Fault], m.Advice) }

// ready returns nil once Redis answers. It returns the error of Redis after the
// limiter has opened its circuit, because the limiter then logs how Redis fares.
// It tries again after the first failure, because the first connection takes
// longest.
func ready(ctx context.Context, limiter *shared.Limiter) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		err := limiter.Ready(ctx)
		if err == nil || errors.Is(err, shared.ErrMisconfigured) || limiter.Stats().Fallback.Open > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}
