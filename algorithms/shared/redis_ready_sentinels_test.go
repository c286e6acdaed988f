// What Ready finds behind Sentinels, for both kinds of failover client.

package shared

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

// masterName is what Sentinels of package redistest call their master.
const masterName = "penstock"

// failoverClients returns limiters with both kinds of failover client, by name.
func failoverClients(t *testing.T, name string, config *tls.Config, addrs ...string) map[string]*Limiter {
	t.Helper()
	// Without a DialTimeout, a handshake with a server that hangs never ends.
	o := &redis.FailoverOptions{MasterName: name, SentinelAddrs: addrs, TLSConfig: config, DialTimeout: time.Second}
	one, cluster := redis.NewFailoverClient(o), redis.NewFailoverClusterClient(o)
	t.Cleanup(func() { _, _ = one.Close(), cluster.Close() })
	return map[string]*Limiter{"failover": hurried(t, one), "failover cluster": hurried(t, cluster)}
}

// wantHint wants an error that is no misconfiguration, with the hint at TLS.
func wantHint(t *testing.T, l *Limiter, what string) {
	t.Helper()
	err := l.redis.ready(t.Context())
	if err == nil || errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), "speak TLS") {
		t.Errorf("%s: got %v, want no misconfiguration, and a hint at TLS", what, err)
	}
}

func TestReadyFindsTLSBehindSentinels(t *testing.T) {
	t.Parallel()
	server := redistest.StartTLS(t)
	trusted := &tls.Config{RootCAs: server.Roots()}
	plain, encrypted := server.StartSentinel(t, server.Addr())
	for _, l := range failoverClients(t, masterName, nil, plain) {
		wantMisconfigured(t, l, "tls", "speaks TLS", "Sentinels")
	}
	for _, l := range failoverClients(t, masterName, new(tls.Config), encrypted) {
		wantMisconfigured(t, l, "certificate", "x509", "RootCAs")
	}
	trusted.ServerName = "127.0.0.1" // go-redis forgets the loopback host that a Sentinel names
	for name, l := range failoverClients(t, masterName, trusted, encrypted) {
		redistest.UntilEmpty(t, "the client of a "+name+" is ready", func() string { return text(l.redis.ready(t.Context())) })
	}
	for name, l := range failoverClients(t, masterName, nil, encrypted) {
		wantHint(t, l, name+" without TLS at Sentinels with TLS")
	}
	for name, l := range failoverClients(t, masterName, trusted, plain) {
		wantHint(t, l, name+" with TLS at Sentinels without it")
	}
}

// The reverse: Sentinels with TLS name a master without it. A failover client hides
// the master's address.
func TestReadyFindsPlaintextBehindSentinels(t *testing.T) {
	t.Parallel()
	tlsServer := redistest.StartTLS(t)
	_, encrypted := tlsServer.StartSentinel(t, redistest.Start(t).Addr())
	clients := failoverClients(t, masterName, &tls.Config{RootCAs: tlsServer.Roots()}, encrypted)
	wantMisconfigured(t, clients["failover cluster"], "plaintext", "speaks TLS", "TLSConfig for the Sentinels")
	wantHint(t, clients["failover"], "failover")
}

// A dead Sentinel does not hide what the others answer.
func TestReadyFindsWrongMasterNames(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	s.Sentinels()[1].Kill()
	for _, l := range failoverClients(t, "wrong", nil, s.Addrs()...) {
		wantMisconfigured(t, l, "master", "name of the master", "MasterName")
	}
	for name, l := range failoverClients(t, s.MasterName(), nil, s.Addrs()...) {
		redistest.UntilEmpty(t, "the client of a "+name+" is ready", func() string { return text(l.redis.ready(t.Context())) })
	}
	for _, sentinel := range s.Sentinels() {
		sentinel.Kill()
	}
	for name, l := range failoverClients(t, "wrong", nil, s.Addrs()...) {
		// On a busy machine the dials may not fail in time, and then the hint is right.
		redistest.Until(t, name+" without a Sentinel has no hint at TLS", func() bool {
			err := l.redis.ready(t.Context())
			return err != nil && !errors.Is(err, ErrMisconfigured) && !errors.Is(err, errSilent)
		})
	}
}

// Addresses of servers that are no Sentinels, and Sentinels' own passwords.
func TestReadyFindsSentinelSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, l := range failoverClients(t, "any", nil, server.Addr()) {
		wantMisconfigured(t, l, "nosentinel", "unknown command", "SentinelAddrs")
	}
	addr, _ := redistest.StartTLS(t).StartSentinel(t, server.Addr(), "--requirepass", "secret")
	for _, l := range failoverClients(t, masterName, nil, addr) {
		wantMisconfigured(t, l, "password", "NOAUTH", "SentinelPassword")
	}
}

// text returns the text of an error, "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}
