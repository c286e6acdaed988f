package keyfunc

import (
	"net/http"
	"net/netip"
	"slices"
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

func (p *ipPolicy) client(r *http.Request) found {
	peer, lines := parseAddr(r.RemoteAddr), r.Header[p.header]
	at := found{client: peer, rest: entries{forwarded: p.forwarded, lines: lines}}
	trusted := p.hops > 0 || p.trusts(peer)
	switch {
	case p.header == "":
	case trusted && len(lines) > 0 && p.hops > 0:
		at.count(p.hops)
	case trusted && len(lines) > 0:
		at.walk(p)
	case trusted && p.forwards(r.Header):
		at.origin = keyaccess.OtherHeader
	case trusted:
		at.origin = keyaccess.NoHeader
	case !p.forwards(r.Header):
		at.origin = keyaccess.Direct
	case !peer.IsValid():
		at.origin = keyaccess.NoAddress
	default:
		at.origin = keyaccess.Untrusted
	}
	return at
}

// trusts reports whether a peer or an entry is a proxy. An invalid address is a
// peer without one.
func (p *ipPolicy) trusts(a netip.Addr) bool {
	if !a.IsValid() {
		return p.unix
	}
	return slices.ContainsFunc(p.trusted, func(t netip.Prefix) bool { return t.Contains(a) })
}

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
	entry, more := "", true
	for range hops {
		if entry, more = f.rest.next(); !more {
			f.client, f.origin = netip.Addr{}, keyaccess.FewHops
			return
		}
	}
	f.origin = keyaccess.Forwarded
	f.read(entry)
}

// read makes the address of an entry the client.
func (f *found) read(entry string) {
	if f.client = f.rest.parse(entry); !f.client.IsValid() {
		f.origin = keyaccess.Unreadable
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
	i := strings.LastIndexByte(e.line, ',')
	if e.forwarded {
		i = lastUnquoted(e.line, ',')
	}
	entry = e.line[i+1:]
	if e.more = i >= 0; e.more {
		e.line = e.line[:i]
	}
	return entry, true
}

func (e *entries) parse(entry string) netip.Addr {
	if e.forwarded {
		return parseAddr(forwardedFor(entry))
	}
	return parseAddr(trimOWS(entry))
}
