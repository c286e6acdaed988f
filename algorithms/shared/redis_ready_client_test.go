// What Ready finds at the client's address: TLS, Sentinels, Clusters. The clients
// have go-redis's default options and the limiter its default deadline, so calls
// end before they learn why they cannot connect.

package shared

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// hurried returns a limiter with the default deadline.
func hurried(t *testing.T, c Client) *Limiter {
	t.Helper()
	return newRedis(t, c, &Options{Deadline: defaultDeadline})
}

// clusterClientOf returns a Cluster's client for one address.
func clusterClientOf(t *testing.T, addr string, config *tls.Config) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: config})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func failoverClientOf(t *testing.T, name string, addrs ...string) *redis.Client {
	t.Helper()
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func withTLS(config *tls.Config) func(*redis.Options) {
	return func(o *redis.Options) { o.TLSConfig = config }
}

// wantHint wants an error that is no misconfiguration, with the hint at TLS.
func wantHint(t *testing.T, l *Limiter, what string) {
	t.Helper()
	err := l.redis.ready(t.Context())
	if !errors.Is(err, errSilent) || errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), "speak TLS") {
		t.Errorf("%s: got %v, want no misconfiguration, and a hint at TLS", what, err)
	}
}

// A client and a server that disagree about TLS wait for each other, or hang up.
func TestReadyHintsAtTLS(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--requirepass", "secret"}} {
		addr := redistest.Start(t, args...).Addr()
		wantHint(t, hurried(t, clientOf(t, addr, withTLS(new(tls.Config)))), "a client with TLS")
		wantHint(t, hurried(t, clusterClientOf(t, addr, new(tls.Config))), "a Cluster's client with TLS")
	}
	server := redistest.StartTLS(t)
	wantHint(t, hurried(t, clientOf(t, server.Addr(), nil)), "a client without TLS")
	wantHint(t, hurried(t, clusterClientOf(t, server.Addr(), nil)), "a Cluster's client without TLS")
	wantHint(t, newRedis(t, clientOf(t, server.Addr(), nil), nil), "a client without TLS that learns why")
}

func TestReadyFindsCertificates(t *testing.T) {
	t.Parallel()
	server := redistest.StartTLS(t)
	trusted := &tls.Config{RootCAs: server.Roots()}
	if err := newRedis(t, clientOf(t, server.Addr(), withTLS(trusted)), nil).redis.ready(t.Context()); err != nil {
		t.Error(err)
	}
	wantMisconfigured(t, hurried(t, clientOf(t, server.Addr(), withTLS(new(tls.Config)))), "certificate", "x509", "RootCAs")
	other := &tls.Config{RootCAs: server.Roots(), ServerName: "other"}
	wantMisconfigured(t, hurried(t, clientOf(t, server.Addr(), withTLS(other))), "certificate", "x509", "ServerName")

	strict := redistest.StartTLS(t, "--tls-auth-clients", "yes")
	trusted = &tls.Config{RootCAs: strict.Roots()}
	wantMisconfigured(t, hurried(t, clientOf(t, strict.Addr(), withTLS(trusted))), "certificate", "tls: ", "Certificates")
}

func TestReadyFindsSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	addrs := s.Addrs()
	wantMisconfigured(t, hurried(t, clientOf(t, addrs[0], nil)), "sentinel", "Sentinel", "redis.NewFailoverClient")
	wantMisconfigured(t, hurried(t, clusterClientOf(t, addrs[0], nil)), "standalone", "cluster", "redis.NewFailoverClient")
	wantMisconfigured(t, hurried(t, failoverClientOf(t, "wrong", addrs...)), "master", "name of the master", "MasterName")
	// With the whole deadline, the call itself learns why.
	err := ask(t, failoverClientOf(t, "wrong", addrs...), "usr=1")
	wantTrouble(t, err, "sentinels", "configuration failure")
	if err := newRedis(t, failoverClientOf(t, s.MasterName(), addrs...), nil).redis.ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReadyFindsStandaloneServers(t *testing.T) {
	t.Parallel()
	c := clusterClientOf(t, redistest.Start(t).Addr(), nil)
	wantMisconfigured(t, newRedis(t, c, nil), "standalone", "cluster", "redis.NewClient")
}

// A Cluster's client asks for the nodes before it asks anything else.
func TestReadyFindsWhatAClusterClientLacks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "secret")
	admin := clientOf(t, server.Addr(), func(o *redis.Options) { o.Password = "secret" })
	do(t, admin, "acl", "setuser", "limiter", "on", ">secret", "~*", "+@all", "-cluster")
	for _, tt := range []struct{ user, password, fault, says, advice string }{
		{"", "", "password", "NOAUTH", "Password"},
		{"", "wrong", "login", "WRONGPASS", "Password"},
		{"limiter", "secret", "permission", "'cluster", "+cluster"},
	} {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, Username: tt.user, Password: tt.password})
		t.Cleanup(func() { _ = c.Close() })
		wantMisconfigured(t, hurried(t, c), tt.fault, tt.says, tt.advice)
	}
}

// A server that is down or hangs is no misconfiguration, with TLS or without.
func TestReadyDoesNotBlameTLS(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){"dead": (*redistest.Server).Kill, "hangs": (*redistest.Server).Stop} {
		for _, config := range []*tls.Config{nil, {}} {
			server := redistest.Start(t)
			c := clientOf(t, server.Addr(), func(o *redis.Options) { o.TLSConfig, o.DialTimeout = config, time.Second })
			lose(server)
			l := hurried(t, c)
			redistest.UntilEmpty(t, fmt.Sprintf("%s, TLS %t: Ready gives no hint at TLS if the client cannot connect", name, config != nil), func() string {
				err := l.redis.ready(t.Context())
				if err == nil || errors.Is(err, ErrMisconfigured) {
					t.Errorf("%s, TLS %t: got %v, want an error without advice", name, config != nil, err)
				}
				if name == "dead" && errors.Is(err, errSilent) { // a busy process learns too late that it was refused
					return err.Error()
				}
				return ""
			})
		}
	}
}

// A lateRefusal is a client whose scripts do not learn within the deadline that it
// cannot connect.
type lateRefusal struct{}

func (lateRefusal) Process(ctx context.Context, cmd redis.Cmder) error {
	if cmd.Name() != "time" {
		<-ctx.Done()
		return ctx.Err()
	}
	cmd.SetErr(errRefused)
	return errRefused
}

// Ready names what keeps the client from connecting, and not the deadline.
func TestReadySaysWhyTheClientCannotConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := hurried(t, lateRefusal{}).redis.ready(t.Context())
		if Reason(err) != trouble.Unavailable || !strings.Contains(err.Error(), "refused") || errors.Is(err, errSilent) {
			t.Errorf("got %v with reason %s, want that the connection is refused", err, Reason(err))
		}
	})
}
