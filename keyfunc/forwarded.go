package keyfunc

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// The walk from right to left reads only entries that the configured proxies
// wrote: the rightmost was written by the peer, and the next one by the proxy
// whose address the entry before it has. So an entry of the walk that is no
// address is a proxy's own, and its client is unknown. What stands to the left
// of the client was written by the client, and may be anything.

// A found client is the address, which is invalid if the client is unknown,
// with the reason for it. The entries left of the client follow.
type found struct {
	client netip.Addr
	origin keyaccess.Origin
	rest   entries
}

// client finds the client of r.
func (p *ipPolicy) client(r *http.Request) found {
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok {
		peer = netip.Addr{}
	}
	lines := r.Header[p.header]
	switch {
	case p.header == "":
		return found{client: peer}
	case p.hops == 0 && !p.trusts(peer):
		return found{client: peer, origin: p.untrusted(peer, r.Header)}
	case len(lines) == 0:
		return found{client: peer, origin: p.headerless(r.Header)}
	}
	at := found{client: peer, rest: entries{forwarded: p.forwarded, lines: lines}}
	if p.hops > 0 {
		at.count(p.hops)
	} else {
		at.walk(p)
	}
	return at
}

// trusts reports whether a peer or an entry is a proxy. An invalid address is a
// peer without one.
func (p *ipPolicy) trusts(a netip.Addr) bool {
	if !a.IsValid() {
		return p.unix
	}
	for _, t := range p.trusted {
		if t.Contains(a) {
			return true
		}
	}
	return false
}

// untrusted returns why an untrusted peer is the client.
func (p *ipPolicy) untrusted(peer netip.Addr, h http.Header) keyaccess.Origin {
	switch {
	case !p.forwards(h):
		return keyaccess.Direct
	case !peer.IsValid():
		return keyaccess.NoAddress
	}
	return keyaccess.Untrusted
}

// headerless returns why a proxy that has not set the header is the client.
func (p *ipPolicy) headerless(h http.Header) keyaccess.Origin {
	if p.forwards(h) {
		return keyaccess.OtherHeader
	}
	return keyaccess.NoHeader
}

// forwards reports whether a proxy has forwarded the request.
func (p *ipPolicy) forwards(h http.Header) bool {
	return len(h[p.header]) > 0 || len(h["X-Forwarded-For"]) > 0 || len(h["Forwarded"]) > 0 || len(h["X-Real-Ip"]) > 0
}

// walk walks the entries from the right, for as long as they are trusted. It
// looks at one entry at a time: a header may have thousands.
func (f *found) walk(p *ipPolicy) {
	f.origin = keyaccess.Forwarded
	for p.trusts(f.client) {
		entry, more := f.rest.next()
		if !more {
			return
		}
		if f.read(entry); !f.client.IsValid() {
			return
		}
	}
}

// count finds the entry at the place hops from the right.
func (f *found) count(hops int) {
	for ; ; hops-- {
		entry, more := f.rest.next()
		switch {
		case !more:
			f.client, f.origin = netip.Addr{}, keyaccess.FewHops
			return
		case hops == 1:
			f.origin = keyaccess.Forwarded
			f.read(entry)
			return
		}
	}
}

// read makes the address of an entry the client.
func (f *found) read(entry string) {
	var ok bool
	if f.client, ok = f.rest.parse(entry); !ok {
		f.client, f.origin = netip.Addr{}, keyaccess.Unreadable
	}
}

// The entries of a header's lines, read from the right.
type entries struct {
	forwarded bool     // the lines are Forwarded of RFC 7239
	lines     []string // not begun yet
	line      string   // begun, if more
	more      bool
}

// next returns the next entry to the left, or false after the last. An empty
// entry counts: a proxy that knows no address may append it. If it were
// skipped, the client's own entry before it would count as the proxy's.
func (e *entries) next() (entry string, ok bool) {
	if !e.more {
		last := len(e.lines) - 1
		if last < 0 {
			return "", false
		}
		e.line, e.lines = e.lines[last], e.lines[:last]
	}
	var i int
	if e.forwarded {
		i = lastUnquoted(e.line, ',')
	} else {
		i = strings.LastIndexByte(e.line, ',')
	}
	entry = e.line[i+1:]
	if e.more = i >= 0; e.more {
		e.line = e.line[:i]
	}
	return entry, true
}

// parse returns the address of an entry.
func (e *entries) parse(entry string) (netip.Addr, bool) {
	if e.forwarded {
		return parseAddr(forwardedFor(entry))
	}
	return parseAddr(trimOWS(entry))
}
