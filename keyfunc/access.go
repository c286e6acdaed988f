// What other packages of this module may see of a Key and a Request.

package keyfunc

import (
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

func init() {
	keyaccess.Forms = func(key any) [][]string { return key.(Key).forms() }
	keyaccess.Addresses = func(key any, a netip.Addr) []string { return key.(Key).addresses(a) }
	keyaccess.SetGuard = func(request any, g keyaccess.Guard) { request.(*Request).guard = g }
	keyaccess.Identify = func(request any, id, tier string) { request.(*Request).known = Identity{ID: id, Tier: tier} }
	keyaccess.OriginOf = func(key, request any) keyaccess.Address { return key.(Key).originOf(request.(*Request)) }
}

// forms returns the possible sequences of parts; none of the zero Key.
func (k Key) forms() [][]string {
	if k.def == nil {
		return nil
	}
	forms := slices.Clone(k.def.forms)
	for i, form := range forms {
		forms[i] = slices.Clone(form)
	}
	return forms
}

// addresses returns the parts that k makes of an address.
func (k Key) addresses(a netip.Addr) (parts []string) {
	if k.def == nil {
		return nil
	}
	for _, p := range k.def.ips {
		parts = appendNew(parts, []string{string(p.appendAddr([]byte("ip="), a.Unmap().WithZone("")))})
	}
	return parts
}

// originOf returns where k finds the client of q; see package keyaccess.
func (k Key) originOf(q *Request) keyaccess.Address {
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
		if a, ok := f.rest.parse(at.Left); ok { // without the port, which changes with each connection
			at.Left = a.String()
		}
	}
	return at
}

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
