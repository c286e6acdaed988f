// What serves at the client's address, for a client that receives no answer.
//
// A client and a server that disagree about TLS wait for each other, or hang
// up. Their errors do not name TLS, so look connects to the server itself, both
// as the client would and the other way.
//
// Go-redis hides the addresses of Sentinels, and a failover client also hides its
// master's. So look cannot try the other protocol in two cases: the Sentinels
// differ from the client, or the master differs from a failover client that has a
// TLSConfig. To the client, such a server looks like one that hangs, or like a
// proxy that hangs up. Ready then says that TLS may be the reason, and does not
// call it a misconfiguration.

package shared

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	errTLS   = errors.New("the server speaks TLS, and the client does not")
	errNoTLS = errors.New("the client speaks TLS, and the server does not")

	// errSilent is a hint. The reason may also pass.
	errSilent = errors.New("the Sentinels or their master do not answer: if this lasts, check that all of them speak TLS, or none if the client has no TLSConfig")
)

const (
	// lookFor bounds look. A server that the limiter can use answers within its
	// deadline, which is shorter.
	lookFor = 300 * time.Millisecond
	// lookBehindSentinels is lookFor for a client that asks Sentinels. It reports
	// their answers when the last of them has answered or failed, and a dead one
	// fails after 2 s. Go-redis lets one connection at a time ask.
	lookBehindSentinels = 4 * time.Second
)

// failoverAddr is the address of all clients of redis.NewFailoverClient.
const failoverAddr = "FailoverClient"

// A peer is the server to which a client connects, and whether the client uses TLS.
type peer struct {
	network   string
	find      func(context.Context) (addr string, err error)
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	tls       bool
	sentinels bool // know its address
}

// peer returns the peer of a client that shows its options; of a Cluster, the
// first of its addresses.
func (r *redisLayer) peer() (peer, bool) {
	known := func(addr string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return addr, nil }
	}
	switch c := r.client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		return peer{o.Network, known(o.Addr), o.Dialer, o.TLSConfig != nil, o.Addr == failoverAddr}, o.Dialer != nil
	case clusterClient:
		o := c.Options()
		dial := o.Dialer
		if dial == nil {
			dial = redis.NewDialer(&redis.Options{DialTimeout: cmp.Or(o.DialTimeout, lookFor), TLSConfig: o.TLSConfig})
		}
		if len(o.Addrs) > 0 {
			return peer{"tcp", known(o.Addrs[0]), dial, o.TLSConfig != nil, false}, true
		}
		return peer{"tcp", firstMaster(o), dial, o.TLSConfig != nil, true}, o.ClusterSlots != nil
	}
	return peer{}, false
}

// firstMaster finds the master of a client of redis.NewFailoverClusterClient, which
// has no addresses.
func firstMaster(o *redis.ClusterOptions) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		slots, err := o.ClusterSlots(ctx)
		if err != nil {
			return "", err
		}
		if len(slots) == 0 || len(slots[0].Nodes) == 0 {
			return "", errReply
		}
		return slots[0].Nodes[0].Addr, nil
	}
}

// look returns a misconfiguration that keeps the client from connecting, errSilent,
// or nil.
func (r *redisLayer) look(ctx context.Context) error {
	p, ok := r.peer()
	if !ok {
		return nil
	}
	within, nothing := lookFor, error(nil)
	if p.sentinels {
		within, nothing = lookBehindSentinels, errSilent
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	// Go-redis reports what Sentinels answered only when the context ends.
	end, _ := ctx.Deadline()
	attempts, stop := context.WithDeadline(ctx, end.Add(-time.Until(end)/6))
	defer stop()
	// They may outlive look: a dial with TLS does not obey the context.
	same, other := make(chan error, 1), make(chan error, 1)
	go func() { same <- p.asTheClient(attempts) }()
	go func() { other <- p.theOtherWay(attempts) }()
	for range 2 {
		select {
		case err := <-same:
			if err == nil || troubleOf(err).fault != nil {
				return err
			}
			if dialing(err) {
				nothing = nil
			}
		case err := <-other:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return nothing
		}
	}
	return nothing
}

// asTheClient connects and asks as the client does. It returns nil if the server
// answers.
func (p peer) asTheClient(ctx context.Context) error {
	addr, err := p.find(ctx)
	if err != nil {
		return err
	}
	conn, err := p.dial(ctx, p.network, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	return ping(ctx, conn)
}

// theOtherWay returns errTLS or errNoTLS if the server understands the protocol
// that the client does not speak.
func (p peer) theOtherWay(ctx context.Context) error {
	addr, err := p.find(ctx)
	if err != nil {
		return nil
	}
	dial := p.dial
	if p.tls {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, p.network, addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if p.tls {
		if ping(ctx, conn) == nil {
			return errNoTLS
		}
		return nil
	}
	host, _, _ := net.SplitHostPort(addr)
	err = tls.Client(conn, &tls.Config{ServerName: cmp.Or(host, addr), MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	var unverified *tls.CertificateVerificationError
	var alert *net.OpError
	if err == nil || errors.As(err, &unverified) || errors.As(err, &alert) && alert.Op == "remote error" {
		return errTLS
	}
	return nil
}

// ping returns nil if the server answers in Redis's protocol, even with an
// error.
func ping(ctx context.Context, conn net.Conn) error {
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return err
	}
	if first[0] != '+' && first[0] != '-' {
		return errReply
	}
	return nil
}
