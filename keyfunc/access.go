// What other packages of this module may see of a Key and a Request.

package keyfunc

import (
	"net/netip"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// Addresses is for this module.
func (k Key) Addresses(a netip.Addr) (parts []string) {
	if k.def == nil {
		return nil
	}
	for _, p := range k.def.ips {
		parts = appendNew(parts, []string{string(p.appendAddr([]byte("ip="), a.Unmap().WithZone("")))})
	}
	return parts
}

// OriginOf is for this module.
func (k Key) OriginOf(q *Request) keyaccess.Address {
	p := k.proxied()
	if info := &k.def.info; p == nil && (info.ByClientIP || len(info.Challenges) > 0) { // guesses of API keys count by address
		p = q.ClientIP.proxied()
	}
	if p == nil {
		return keyaccess.Address{}
	}
	f := p.client(q.Request)
	at := keyaccess.Address{Origin: f.origin, Client: f.client}
	if f.origin == keyaccess.Forwarded {
		at.Left, _ = f.rest.next()
		if a := f.rest.parse(at.Left); a.IsValid() { // without the port, which changes with each connection
			at.Left = a.String()
		}
	}
	return at
}

// SetGuard is for this module.
func (q *Request) SetGuard(g keyaccess.Guard) { q.guard = g }

// Identify is for this module.
func (q *Request) Identify(id, tier string) { q.known = Identity{ID: id, Tier: tier} }

// proxied returns the first policy of k that names proxies, or nil.
func (k Key) proxied() *ipPolicy {
	if k.def == nil {
		return nil
	}
	for _, p := range k.def.ips {
		if p.header != "" {
			return p
		}
	}
	return nil
}
