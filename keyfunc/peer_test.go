package keyfunc_test

import (
	"net/netip"
	"testing"

	"github.com/penstock-go/penstock/keyfunc"
)

func TestByPeer(t *testing.T) {
	peer, user := keyfunc.IP(nil), keyfunc.Header("X-Tenant")
	trusting := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, tt := range []struct {
		name string
		key  keyfunc.Key
		want bool
	}{
		{"the peer", peer, true},
		{"behind proxies", trusting, false},
		{"a user", user, false},
		{"the zero Key", keyfunc.Key{}, false},
		{"joined", keyfunc.Join(user, peer), true},
		{"joined, behind proxies", keyfunc.Join(user, trusting), false},
		{"for those without a user", keyfunc.FirstOf(user, peer), true},
		{"deep inside", keyfunc.Join(keyfunc.FirstOf(user, peer), keyfunc.Route()), true},
	} {
		if got := tt.key.ByPeer(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
