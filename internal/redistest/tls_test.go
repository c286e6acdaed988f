package redistest

import (
	"crypto/tls"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A client that trusts the certificate reaches the server, and no other client does.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := StartTLS(t)
	for _, tt := range []struct {
		name string
		tls  *tls.Config
		want bool
	}{
		{"trust", &tls.Config{RootCAs: s.Roots()}, true},
		{"no trust", new(tls.Config), false},
		{"no TLS", nil, false},
	} {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), TLSConfig: tt.tls, MaxRetries: -1, DialerRetries: 1})
		defer client.Close()
		if err := client.Ping(t.Context()).Err(); (err == nil) != tt.want {
			t.Errorf("%s: got %v, want an answer: %t", tt.name, err, tt.want)
		}
	}
}
