package redistest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A TLSServer is a server with a second port, on which it speaks TLS.
type TLSServer struct {
	addr, certificate, key string
	roots                  *x509.CertPool
}

// StartTLS starts a server that speaks TLS, with the given extra arguments of redis-server. It accepts clients without
// a certificate, unless an argument says otherwise. It skips the test if the server was built without TLS.
func StartTLS(tb testing.TB, args ...string) *TLSServer {
	tb.Helper()
	s := &TLSServer{roots: x509.NewCertPool()}
	s.certificate, s.key = filepath.Join(tb.TempDir(), "cert.pem"), filepath.Join(tb.TempDir(), "key.pem")
	s.certify(tb)
	port := reservePort(tb, false)
	s.addr = address(port)
	if why := withoutTLS(port); why != "" {
		tb.Skipf("redistest: this server was built without TLS:\n%s", why)
	}
	Start(tb, append(s.arguments(port), args...)...)
	return s
}

// arguments returns the arguments of a server with the certificate of s.
func (s *TLSServer) arguments(port int) []string {
	return []string{
		"--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no",
		"--tls-cert-file", s.certificate, "--tls-key-file", s.key, "--tls-ca-cert-file", s.certificate,
	}
}

// StartSentinel starts one sentinel, with extra arguments. It names the server at an address as the master, and does not
// watch it with TLS. StartSentinel returns the sentinel's address without TLS, and the one with TLS, where the sentinel has
// the certificate of s.
func (s *TLSServer) StartSentinel(tb testing.TB, master string, args ...string) (plain, encrypted string) {
	tb.Helper()
	port := reservePort(tb, false)
	_, text, _ := net.SplitHostPort(master)
	masterPort, err := strconv.Atoi(text)
	must(tb, err)
	return startSentinel(tb, masterPort, append(s.arguments(port), args...)...).Addr(), address(port)
}

// withoutTLS returns the output of a server that was built without TLS, and "" for any other server. The server has no
// certificate here, so it ends at once in either case.
func withoutTLS(port int) string {
	server := cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")
	out, _ := exec.Command(server, "--port", "0", "--tls-port", strconv.Itoa(port)).CombinedOutput()
	for _, says := range []string{"Bad directive", "Failed finding TLS support"} {
		if strings.Contains(string(out), says) {
			return string(out)
		}
	}
	return ""
}

// Addr returns host and port of the listener with TLS.
func (s *TLSServer) Addr() string { return s.addr }

// Roots returns a pool with the server's certificate. A client without it does not trust the server.
func (s *TLSServer) Roots() *x509.CertPool { return s.roots }

// certify writes a key and a self-signed certificate.
func (s *TLSServer) certify(tb testing.TB) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(tb, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	s.roots.AppendCertsFromPEM(text)
	must(tb, os.WriteFile(s.certificate, text, 0o600))
	must(tb, os.WriteFile(s.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
