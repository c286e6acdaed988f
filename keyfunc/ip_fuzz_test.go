package keyfunc

import (
	"net/netip"
	"strings"
	"testing"
)

// slowAddr is parseAddr, from the rules in its documentation.
func slowAddr(s string) (netip.Addr, bool) {
	bracketed := strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]")
	a, err := netip.ParseAddr(s)
	if err != nil && bracketed {
		// With a port behind the brackets, netip checks their content.
		s += ":0"
	}
	if err != nil {
		var ap netip.AddrPort
		ap, err = netip.ParseAddrPort(s)
		a = ap.Addr()
	}
	if err != nil {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(a.As16()).Unmap(), true
}

// slowClient is the walk over entries that were split beforehand, left to
// right, to nodes without quotes; a node that is no address is "".
func slowClient(peer string, entries []string) string {
	a, ok := slowAddr(peer)
	if !ok {
		return "ip=unknown"
	}
	for i := len(entries); slowTrusts(a) && i > 0; i-- {
		next, ok := slowAddr(entries[i-1])
		if !ok {
			break
		}
		a = next
	}
	return slowText(a)
}

func slowTrusts(a netip.Addr) bool {
	s := a.String()
	return strings.HasPrefix(s, "10.") || s == "192.168.1.1" || a.Is6() && a.As16()[0] == 0xfd
}

func slowText(a netip.Addr) string {
	b := a.As16()
	if a.Is4() || strings.HasPrefix(string(b[:]), "\x20\x01\x00\x00") ||
		strings.HasPrefix(string(b[:]), "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00") {
		return "ip=" + a.String()
	}
	clear(b[8:])
	return "ip=" + netip.AddrFrom16(b).String() + "/64"
}

// slowList splits the lines of a list header at once.
func slowList(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	entries := strings.Split(strings.Join(lines, ","), ",")
	for i := range entries {
		entries[i] = strings.Trim(entries[i], " \t")
	}
	return entries
}

func fuzzLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func FuzzIP(f *testing.F) {
	for _, tt := range ipTests {
		f.Add(tt.peer, strings.Join(tt.xff, "\n"))
	}
	for _, peer := range peers {
		f.Add(peer, "")
	}
	key, direct := IP(&IPOptions{Trusted: proxies}), IP(nil)
	f.Fuzz(func(t *testing.T, peer, header string) {
		lines := fuzzLines(header)
		got, err := key.Of(forwardedRequest(peer, "X-Forwarded-For", lines))
		if err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		checkText(t, got)
		if want := slowClient(peer, slowList(lines)); got != want {
			t.Errorf("got %q of %q %q, want %q", got, peer, lines, want)
		}
		got, err = direct.Of(forwardedRequest(peer, "X-Forwarded-For", lines))
		if want := slowClient(peer, nil); err != nil || got != want {
			t.Errorf("got %q, %v of %q without proxies, want %q", got, err, peer, want)
		}
	})
}

// peers are where the texts of addresses and ports begin and end.
var peers = []string{
	"0.0.0.0:0", "255.255.255.255:65535", "255.255.255.255:65536", "1.2.3.4:00080", "1.2.3.4:000080", "1.2.3.4:99999",
	"256.2.3.4:80", "1.2.3.256:80", "1.2.3.1000:80", "00.2.3.4:80", "1.2.3.04:80", "1..3.4:80", ".1.2.3:80", "1.2.3.:80",
	"1.2.3:80", "1.2.3.4.5:80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:8a", "1.2.3.4:-1", "1.2.3.4:+1", "1.2.3.4:80:80", "1.2.3.4 :80",
	"1.2.3.a:80", "1.2.3./:80", "255.255.255.255", "255.255.255.2555:1", ":80", "1:80", "1.2.3.4/8:80",
}

// slowForwarded parses lines left to right, byte by byte, into the nodes of
// their elements. It reports false when quotes are damaged.
func slowForwarded(lines []string) (nodes []string, sound bool) {
	for _, line := range lines {
		const outside, inside, after = 0, 1, 2
		state, elements := outside, []string{""}
		for i, c := range []byte(line) {
			last := &elements[len(elements)-1]
			switch {
			case c == '\\':
				return nil, false
			case state == inside:
				if *last += string([]byte{c}); c == '"' {
					state = after
				}
				continue
			case c == '"' && (state == after || i == 0 || line[i-1] != '='):
				return nil, false
			case c == '"':
				state = inside
			case state == after && !strings.ContainsRune(" \t,;", rune(c)):
				return nil, false
			default:
				state = outside
			}
			if c == ',' {
				elements = append(elements, "")
				continue
			}
			*last += string([]byte{c})
		}
		if state == inside {
			return nil, false
		}
		for _, e := range elements {
			nodes = append(nodes, slowNode(e))
		}
	}
	return nodes, true
}

func slowNode(element string) string {
	var found []string
	for _, pair := range slowSplit(element, ';') {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if strings.ToLower(name) != "for" {
			continue
		}
		if strings.HasPrefix(value, `"`) && strings.HasSuffix(value, `"`) && len(value) > 1 {
			value = value[1 : len(value)-1]
		}
		found = append(found, value)
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

func slowSplit(s string, sep byte) []string {
	quoted, parts := false, []string{""}
	for _, c := range []byte(s) {
		if c == '"' {
			quoted = !quoted
		}
		if c == sep && !quoted {
			parts = append(parts, "")
			continue
		}
		parts[len(parts)-1] += string([]byte{c})
	}
	return parts
}

func FuzzForwarded(f *testing.F) {
	for _, tt := range forwardedTests {
		f.Add(proxy, strings.Join(tt.lines, "\n"))
	}
	key := IP(&IPOptions{Trusted: proxies, Header: "Forwarded"})
	f.Fuzz(func(t *testing.T, peer, header string) {
		lines := fuzzLines(header)
		got, err := key.Of(forwardedRequest(peer, "Forwarded", lines))
		if err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		checkText(t, got)
		nodes, sound := slowForwarded(lines)
		if !sound {
			nodes = nil
		}
		if want := slowClient(peer, nodes); got != want {
			t.Errorf("got %q of %q %q, want %q", got, peer, lines, want)
		}
	})
}

// A client controls its own lines, and the text before the comma where the proxy
// appends. The client is the address that the proxy has seen, or the proxy. It
// is never an address that the client has made up.
func FuzzForwardedCannotBeForged(f *testing.F) {
	for _, tt := range forwardedTests {
		for _, line := range tt.lines {
			f.Add(line, line)
		}
	}
	f.Add(`for=6.6.6.6;x="`, `for="`)
	f.Add(`for=6.6.6.6;x="\`, `"`)
	key := IP(&IPOptions{Trusted: proxies, Header: "Forwarded"})
	f.Fuzz(func(t *testing.T, line, before string) {
		for _, added := range []string{`for=1.2.3.4`, `for="1.2.3.4:80"`, `proto=https;For="1.2.3.4";by="[fd00::1]"`} {
			r := forwardedRequest(proxy, "Forwarded", []string{line, before + ", " + added})
			got, _ := key.Of(r)
			if got != "ip=1.2.3.4" && got != "ip=10.0.0.1" {
				t.Errorf("got %q of %q, want the client or its proxy", got, r.Header["Forwarded"])
			}
		}
	})
}
