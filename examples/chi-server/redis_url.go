package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinelScheme = "redis+sentinel://" // MASTER[:password]@host:port,…[/db]
	clusterScheme  = "redis+cluster://"  // [user:password@]host:port,…
)

// What limits want of a client, unless the URL says otherwise.
const (
	// A Redis that hangs holds up connections for this long.
	readTimeout = 500 * time.Millisecond
	// The limiter tries again by itself, and meanwhile decides without Redis:
	// with more dials than one, a call would end before it learns what is wrong.
	dials = 1
)

// A redisURL is a server, the sentinels of one, or a cluster.
type redisURL struct {
	addrs string // without a password, for messages
	open  func() redis.UniversalClient
}

var (
	errServer   = errors.New("want redis://[user:password@]host:port[/db], with %40 for @ in a password, %2F for / and so on")
	errSentinel = errors.New("want " + sentinelScheme + "MASTER[:password]@host:port,host:port[/db]")
	errCluster  = errors.New("want " + clusterScheme + "[user:password@]host:port,host:port")
)

// parseRedis reads a URL. Its errors hold no part of it that may be of a
// password.
func parseRedis(text string) (*redisURL, error) {
	if rest, ok := strings.CutPrefix(text, sentinelScheme); ok {
		return parseSentinels(rest)
	}
	if rest, ok := strings.CutPrefix(text, clusterScheme); ok {
		return parseCluster(rest)
	}
	o, err := redis.ParseURL(text)
	switch {
	case err == nil:
	case strings.Contains(text, "@"), errors.As(err, new(*url.Error)):
		return nil, errServer
	default:
		return nil, err
	}
	o.ReadTimeout, o.DialerRetries = cmp.Or(o.ReadTimeout, readTimeout), dials
	return &redisURL{o.Addr, func() redis.UniversalClient { return redis.NewClient(o) }}, nil
}

func parseSentinels(text string) (*redisURL, error) {
	u, err := parseHosts(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, errSentinel)
	case u.user == "":
		return nil, fmt.Errorf("the master has no name: %w", errSentinel)
	}
	o := &redis.FailoverOptions{
		MasterName: u.user, Password: u.password, SentinelAddrs: u.hosts, DB: u.db,
		ReadTimeout: readTimeout, DialerRetries: dials,
	}
	return &redisURL{strings.Join(u.hosts, ","), func() redis.UniversalClient { return redis.NewFailoverClient(o) }}, nil
}

func parseCluster(text string) (*redisURL, error) {
	u, err := parseHosts(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, errCluster)
	case u.db != 0:
		return nil, fmt.Errorf("a cluster has no database %d: %w", u.db, errCluster)
	}
	o := &redis.ClusterOptions{
		Addrs: u.hosts, Username: u.user, Password: u.password,
		ReadTimeout: readTimeout, DialerRetries: dials,
	}
	return &redisURL{strings.Join(u.hosts, ","), func() redis.UniversalClient { return redis.NewClusterClient(o) }}, nil
}

// A hostsURL is what package url does not read: it has several hosts.
type hostsURL struct {
	user, password string
	hosts          []string
	db             int
}

// parseHosts reads [user[:password]@]host:port,…[/db].
func parseHosts(text string) (u hostsURL, err error) {
	at := strings.LastIndexByte(text, '@')
	hosts, db, _ := strings.Cut(text[at+1:], "/")
	if at >= 0 {
		user, password, _ := strings.Cut(text[:at], ":")
		var wrong error
		u.user, wrong = url.PathUnescape(user)
		u.password, err = url.PathUnescape(password)
		if wrong != nil || err != nil {
			return u, errors.New("a % before the @ has no two digits after it")
		}
	}
	if db != "" {
		if u.db, err = strconv.Atoi(db); err != nil || u.db < 0 {
			return u, fmt.Errorf("invalid database number: %q", db)
		}
	}
	u.hosts = strings.Split(hosts, ",")
	for i, address := range u.hosts {
		host, port, err := net.SplitHostPort(address)
		if n, e := strconv.ParseUint(port, 10, 16); err != nil || host == "" || e != nil || n == 0 {
			return u, fmt.Errorf("address %d of %d is not host:port", i+1, len(u.hosts))
		}
	}
	return u, nil
}
