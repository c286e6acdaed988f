// What serves at the client's address, for a client that receives no answer.
//
// A client and a server that disagree about TLS wait for each other, or hang
// up. Their errors do not name TLS, so look connects to the server itself, both
// as the client would and the other way.

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
)

// lookFor bounds look. A server that the limiter can use answers within its
// deadline, which is shorter.
const lookFor = 300 * time.Millisecond

// A peer is the address to which a client connects, and whether it uses TLS.
type peer struct {
	network, addr string
	dial          func(ctx context.Context, network, addr string) (net.Conn, error)
	tls           bool
}

// peer returns the peer of a client that shows its options; of a Cluster, the
// first of its addresses.
func (r *redisLayer) peer() (peer, bool) {
	switch c := r.client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		return peer{o.Network, o.Addr, o.Dialer, o.TLSConfig != nil}, o.Dialer != nil
	case clusterClient:
		o := c.Options()
		dial := o.Dialer
		if dial == nil {
			dial = redis.NewDialer(&redis.Options{DialTimeout: cmp.Or(o.DialTimeout, lookFor), TLSConfig: o.TLSConfig})
		}
		return peer{"tcp", o.Addrs[0], dial, o.TLSConfig != nil}, true
	}
	return peer{}, false
}

// look returns a misconfiguration that keeps the client from connecting, or nil.
func (r *redisLayer) look(ctx context.Context) error {
	p, ok := r.peer()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	// They may outlive look: a dial with TLS does not obey the context.
	same, other := make(chan error, 1), make(chan error, 1)
	go func() { same <- p.asTheClient(ctx) }()
	go func() { other <- p.theOtherWay(ctx) }()
	for range 2 {
		select {
		case err := <-same:
			if err == nil || troubleOf(err).fault != nil {
				return err
			}
		case err := <-other:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// asTheClient connects and asks as the client does. It returns nil if the server
// answers.
func (p peer) asTheClient(ctx context.Context) error {
	conn, err := p.dial(ctx, p.network, p.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	return ping(ctx, conn)
}

// theOtherWay returns errTLS or errNoTLS if the server understands the protocol
// that the client does not speak.
func (p peer) theOtherWay(ctx context.Context) error {
	dial := p.dial
	if p.tls {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, p.network, p.addr)
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
	host, _, _ := net.SplitHostPort(p.addr)
	err = tls.Client(conn, &tls.Config{ServerName: cmp.Or(host, p.addr), MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
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
