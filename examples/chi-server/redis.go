package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	sentinelScheme = "redis+sentinel://" // MASTER@host:port,host:port/db
	clusterScheme  = "redis+cluster://"  // host:port,host:port

	readyTimeout = 3 * time.Second
)

// parseRedis reads the URL of a server, of sentinels or of a cluster. Its errors
// do not hold the URL, which may have a password.
func parseRedis(url string) (*redis.UniversalOptions, error) {
	if rest, ok := strings.CutPrefix(url, sentinelScheme); ok {
		return parseSentinels(rest)
	}
	if rest, ok := strings.CutPrefix(url, clusterScheme); ok {
		o := &redis.UniversalOptions{IsClusterMode: true}
		o.Username, o.Password, rest = cutUser(rest)
		var err error
		o.Addrs, err = addresses(rest)
		return o, err
	}
	one, err := redis.ParseURL(url)
	if err != nil {
		return nil, withoutURL(err)
	}
	return &redis.UniversalOptions{
		Addrs: []string{one.Addr}, DB: one.DB, Username: one.Username, Password: one.Password, TLSConfig: one.TLSConfig,
		ReadTimeout: one.ReadTimeout, WriteTimeout: one.WriteTimeout, DialTimeout: one.DialTimeout, PoolSize: one.PoolSize,
	}, nil
}

// parseSentinels reads MASTER[:password]@host:port,…[/db].
func parseSentinels(text string) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{}
	o.MasterName, o.Password, text = cutUser(text)
	if o.MasterName == "" {
		return nil, errors.New("name the sentinels' master: redis+sentinel://MASTER@host:port,host:port")
	}
	hosts, db, _ := strings.Cut(text, "/")
	var errs, err error
	if db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			errs = fmt.Errorf("invalid database number: %q", db)
		}
	}
	o.Addrs, err = addresses(hosts)
	return o, errors.Join(errs, err)
}

// cutUser cuts user:password@ off.
func cutUser(text string) (user, password, rest string) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return "", "", text
	}
	user, password, _ = strings.Cut(text[:at], ":")
	return user, password, text[at+1:]
}

func addresses(list string) ([]string, error) {
	all := strings.Split(strings.TrimSuffix(list, "/"), ",")
	for _, address := range all {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("%q: want host:port, and commas between them", address)
		}
	}
	return all, nil
}

// newShared returns a limiter in Redis. If that is down the server serves all
// the same, and the limiter recovers by itself; only a mistake of whoever
// configured it is an error.
func newShared(ctx context.Context, c config, log *slog.Logger) (algorithms.Limiter, func() error, error) {
	rdb := redis.NewUniversalClient(c.redis)
	stack, err := algorithms.NewShared(rdb, &algorithms.Options{
		Redis:   algorithms.RedisOptions{Prefix: c.prefix},
		Observe: func(e algorithms.Event) { logEvent(log, e) },
	})
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	closeAll := func() error { return errors.Join(stack.Close(), rdb.Close()) }
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err = stack.Ready(ctx)
	if algorithms.Classify(err) == algorithms.ErrorConfiguration {
		return nil, nil, errors.Join(fmt.Errorf("cannot use Redis at %s: %w", strings.Join(c.redis.Addrs, ","), err), closeAll())
	}
	if err != nil {
		log.Error("Redis is not available: every instance limits for itself until it is",
			"redis", strings.Join(c.redis.Addrs, ","), "error", err)
	}
	return stack, closeAll, nil
}

// logEvent logs what an operator should know; how often the rest happens is in
// the metrics.
func logEvent(log *slog.Logger, e algorithms.Event) {
	switch e.Kind {
	case algorithms.EventOpened:
		log.Error("the limiter leaves Redis alone for a while", "class", e.Class, "error", e.Err)
	case algorithms.EventClosed:
		log.Info("the limiter uses Redis again")
	case algorithms.EventError:
		if e.Class == algorithms.ErrorConfiguration {
			log.Error("the limiter is not configured for this Redis", "error", e.Err)
		}
	}
}
