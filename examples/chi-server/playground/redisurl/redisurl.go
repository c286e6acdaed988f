// Package redisurl reads the URL of the example's flag -redis, and says how to correct it.
// A service of yours makes its client in Go.
//
// It is a part of the example, and no API for others.
package redisurl

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

// A URL is a parsed URL of Redis.
type URL struct {
	Addrs  string // without a password, for messages
	client func() redis.UniversalClient
}

// Open returns a client; nil for a nil URL.
func (r *URL) Open() redis.UniversalClient {
	if r == nil {
		return nil
	}
	return r.client()
}

var (
	errURL = errors.New("want redis://host:port, e.g. redis://127.0.0.1:6379")
	// errPassword does not quote the URL, which may have a part of the password in any place.
	errPassword = errors.New("want redis://user:password@host:port/db, with %40 for @ in the password, %2F for / and so on")
)

// Parse reads a URL with a parser of go-redis. A URL with master_name names
// sentinels, a URL with addr names a Cluster, and any other URL names one server.
// The error contains no part of a password. "" is nil.
func Parse(text string) (*URL, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" && parsed.Scheme != "unix" {
		return nil, urlError(text, errURL)
	}
	if !slices.Contains([]string{"redis", "rediss", "unix"}, parsed.Scheme) {
		return nil, urlError(text, fmt.Errorf("the scheme is %s://: want redis://, or rediss:// for TLS", parsed.Scheme))
	}
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, urlError(text, err)
		}
		o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
		return &URL{strings.Join(o.SentinelAddrs, ","), func() redis.UniversalClient { return redis.NewFailoverClient(o) }}, nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(text)
		if err != nil {
			return nil, urlError(text, err)
		}
		o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
		o.MinRetryBackoff, o.MaxRetryBackoff = cmp.Or(o.MinRetryBackoff, -1), cmp.Or(o.MaxRetryBackoff, -1)
		return &URL{strings.Join(o.Addrs, ","), func() redis.UniversalClient { return redis.NewClusterClient(o) }}, nil
	default:
		o, err := redis.ParseURL(text)
		if err != nil {
			return nil, urlError(text, err)
		}
		o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
		return &URL{o.Addr, func() redis.UniversalClient { return redis.NewClient(o) }}, nil
	}
}

// urlError returns err. If the text may have a password, err might quote a part
// of it, so the error then says only what to write.
func urlError(text string, err error) error {
	if strings.Contains(text, "@") {
		return errPassword
	}
	return errors.New(strings.TrimPrefix(err.Error(), "redis: "))
}

// Ready returns nil once Redis answers. The error of a misconfiguration says how to
// correct the URL or the server. Any other error is that of Redis after the limiter has
// opened its circuit, because the limiter then logs how Redis fares. Ready tries again
// after the first failure, because the first connection takes longest.
func (r *URL) Ready(ctx context.Context, limiter *shared.Limiter) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		err := limiter.Ready(ctx)
		if m := (*shared.Misconfiguration)(nil); errors.As(err, &m) {
			return fmt.Errorf("cannot use Redis at %s: %w (%s)", r.Addrs, misconfiguration{m}, cmp.Or(inURL[m.Fault], m.Advice))
		}
		if err == nil || limiter.Stats().Fallback.Open > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// A misconfiguration has the text of its cause: advice in Go helps no user of a URL.
type misconfiguration struct{ *shared.Misconfiguration }

func (m misconfiguration) Error() string { return m.Cause.Error() }
func (m misconfiguration) Unwrap() error { return m.Misconfiguration }

// inURL says how to correct the URL, by the faults that a URL can correct.
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
