package keyfunc

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client returns the address of the client of r. It reports false if there is
// no address.
func (p *ipPolicy) client(r *http.Request) (netip.Addr, bool) {
	if p.hops > 0 {
		if a, ok := p.count(r.Header[p.header]); ok {
			return a, true
		}
	}
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok || !p.trusts(peer) {
		return peer, ok
	}
	return p.walk(peer, r.Header[p.header]), true
}

func (p *ipPolicy) trusts(a netip.Addr) bool {
	for _, t := range p.trusted {
		if t.Contains(a) {
			return true
		}
	}
	return false
}

// walk walks the entries of the lines from the right, for as long as they are
// trusted. It looks at one entry at a time: a header may have thousands, and
// entries left of the client mean nothing.
func (p *ipPolicy) walk(client netip.Addr, lines []string) netip.Addr {
	if !p.sound(lines) {
		return client
	}
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var entry string
			line, entry, more = p.cutLast(line)
			a, ok := p.parse(entry)
			if !ok {
				return client
			}
			if client = a; !p.trusts(a) {
				return client
			}
		}
	}
	return client
}

// count returns the address at the place p.hops from the right. It reports
// false if the lines have fewer entries, or no address at the place.
func (p *ipPolicy) count(lines []string) (netip.Addr, bool) {
	if !p.sound(lines) {
		return netip.Addr{}, false
	}
	left := p.hops
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var entry string
			line, entry, more = p.cutLast(line)
			if left--; left == 0 {
				return p.parse(entry)
			}
		}
	}
	return netip.Addr{}, false
}

// sound reports whether the lines can be cut into entries.
func (p *ipPolicy) sound(lines []string) bool {
	return !p.forwarded || !slices.ContainsFunc(lines, func(line string) bool { return !soundQuotes(line) })
}

// cutLast cuts the last entry off a line. An empty entry counts: a proxy that
// knows no address may append it. If it were skipped, the client's own entry
// before it would count as the proxy's.
func (p *ipPolicy) cutLast(line string) (rest, entry string, more bool) {
	var i int
	if p.forwarded {
		i = lastUnquoted(line, ',')
	} else {
		i = strings.LastIndexByte(line, ',')
	}
	if i < 0 {
		return "", line, false
	}
	return line[:i], line[i+1:], true
}

// parse returns the address of an entry.
func (p *ipPolicy) parse(entry string) (netip.Addr, bool) {
	if p.forwarded {
		return parseAddr(forwardedFor(entry))
	}
	return parseAddr(trimOWS(entry))
}
