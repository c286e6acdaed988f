// What Ready finds behind Sentinels, for both kinds of failover client.

package shared

import (
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// masterName is what Sentinels of package redistest call their master.
const masterName = "penstock"

// failoverClients returns limiters with both kinds of failover client, by name. They
// have a deadline.
func failoverClients(t *testing.T, deadline time.Duration, name string, config *tls.Config, addrs ...string) map[string]*Limiter {
	t.Helper()
	// Without a DialTimeout, a handshake with a server that hangs never ends.
	o := &redis.FailoverOptions{MasterName: name, SentinelAddrs: addrs, TLSConfig: config, DialTimeout: time.Second}
	limiters := make(map[string]*Limiter)
	for kind, client := range map[string]redis.UniversalClient{
		"failover": redis.NewFailoverClient(o), "failover cluster": redis.NewFailoverClusterClient(o),
	} {
		t.Cleanup(func() { _ = client.Close() })
		limiters[kind] = newRedis(t, client, &Options{Deadline: deadline})
	}
	return limiters
}

// Sentinels and masters that disagree with the client about TLS get a hint, and a
// certificate that the client does not trust is found.
func TestReadyHintsAtTLSBehindSentinels(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	server := redistest.StartTLS(t)
	trusted := &tls.Config{RootCAs: server.Roots()}
	plain, encrypted := server.StartSentinel(t, server.Addr())
	for name, l := range failoverClients(t, defaultDeadline, masterName, nil, plain) {
		wantHint(t, l, name+" without TLS at a master with TLS")
	}
	for _, l := range failoverClients(t, time.Minute, masterName, new(tls.Config), encrypted) { // after several dials
		wantMisconfigured(t, l, "certificate", "x509", "RootCAs")
	}
	trusted.ServerName = "127.0.0.1" // go-redis forgets the loopback host that a Sentinel names
	for name, l := range failoverClients(t, defaultDeadline, masterName, trusted, encrypted) {
		redistest.UntilEmpty(t, "the client of a "+name+" is ready", func() string { return text(l.redis.ready(t.Context())) })
	}
	for name, l := range failoverClients(t, defaultDeadline, masterName, nil, encrypted) {
		wantHint(t, l, name+" without TLS at Sentinels with TLS")
	}
	for name, l := range failoverClients(t, defaultDeadline, masterName, trusted, plain) {
		wantHint(t, l, name+" with TLS at Sentinels without it")
	}
}

// The reverse: Sentinels with TLS name a master without it.
func TestReadyHintsAtPlaintextBehindSentinels(t *testing.T) {
	t.Parallel()
	tlsServer := redistest.StartTLS(t)
	_, encrypted := tlsServer.StartSentinel(t, redistest.Start(t).Addr())
	trusted := &tls.Config{RootCAs: tlsServer.Roots(), ServerName: "127.0.0.1"}
	for name, l := range failoverClients(t, defaultDeadline, masterName, trusted, encrypted) {
		wantHint(t, l, name+" with TLS at a master without it")
	}
}

// A dead Sentinel does not hide what the others answer. The client reports it after
// some seconds.
func TestReadyFindsWrongMasterNames(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := redistest.StartSentinel(t)
	for _, l := range failoverClients(t, defaultDeadline, "wrong", nil, s.Addrs()...) {
		wantMisconfigured(t, l, "master", "name of the master", "MasterName")
	}
	s.Sentinels()[1].Kill()
	for _, l := range failoverClients(t, time.Minute, "wrong", nil, s.Addrs()...) {
		wantMisconfigured(t, l, "master", "name of the master", "MasterName")
	}
	for name, l := range failoverClients(t, defaultDeadline, s.MasterName(), nil, s.Addrs()...) {
		redistest.UntilEmpty(t, "the client of a "+name+" is ready", func() string { return text(l.redis.ready(t.Context())) })
	}
	for _, sentinel := range s.Sentinels() {
		sentinel.Kill()
	}
	for name, l := range failoverClients(t, defaultDeadline, "wrong", nil, s.Addrs()...) {
		if err := l.redis.ready(t.Context()); err == nil || errors.Is(err, ErrMisconfigured) {
			t.Errorf("%s without a Sentinel: got %v, want an error without advice", name, err)
		}
	}
}

// Addresses of servers that are no Sentinels, and Sentinels' own passwords.
func TestReadyFindsSentinelSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, l := range failoverClients(t, defaultDeadline, "any", nil, server.Addr()) {
		wantMisconfigured(t, l, "nosentinel", "unknown command", "SentinelAddrs")
	}
	addr, _ := redistest.StartTLS(t).StartSentinel(t, server.Addr(), "--requirepass", "secret")
	for _, l := range failoverClients(t, defaultDeadline, masterName, nil, addr) {
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
