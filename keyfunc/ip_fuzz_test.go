package keyfunc

import (
	"fmt"
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
		if a, ok = slowAddr(entries[i-1]); !ok {
			return "ip=unknown"
		}
	}
	return slowText(a)
}

func slowTrusts(a netip.Addr) bool {
	s := a.String()
	return strings.HasPrefix(s, "10.") || s == "192.168.1.1" || a.Is6() && a.As16()[0] == 0xfd
}

func slowText(a netip.Addr) string {
	b := a.As16()
	inside := ""
	switch {
	case strings.HasPrefix(string(b[:]), "\x20\x01\x00\x00"):
		inside = fmt.Sprintf("%d.%d.%d.%d", 255-b[12], 255-b[13], 255-b[14], 255-b[15])
	case strings.HasPrefix(string(b[:]), "\x20\x02"):
		inside = fmt.Sprintf("%d.%d.%d.%d", b[2], b[3], b[4], b[5])
	}
	if v4, err := netip.ParseAddr(inside); err == nil && v4.IsGlobalUnicast() && !v4.IsPrivate() {
		return "ip=" + inside
	}
	switch {
	case a.Is4(), strings.HasPrefix(string(b[:]), "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00"):
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

// quoted returns s as a quoted string with more quoted pairs than it needs.
func quoted(s string) string {
	b := []byte{'"'}
	for i, c := range []byte(s) {
		if c == '"' || c == '\\' || i%3 == 0 {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(append(b, '"'))
}

// FuzzForwarded: proxies append elements with any nodes and any quoted text to what the client has sent. A walk
// over these nodes finds the client.
func FuzzForwarded(f *testing.F) {
	for _, tt := range forwardedTests {
		f.Add(proxy, strings.Join(tt.lines, "\n"), "10.0.0.2", "a,b;c", false)
	}
	f.Add(proxy, `"`, "10.0.0.2\n10.0.0.3", `\"`, true)
	f.Add(proxy, `x="`, "_hid\n10.0.0.3", `for=1.1.1.1, \`, true)
	f.Add(proxy, `x=\`, "\nfd00::1", `";for=1.1.1.1`, true)
	key := IP(&IPOptions{Trusted: proxies, Header: "Forwarded"})
	f.Fuzz(func(t *testing.T, peer, sent, nodes, text string, oneLine bool) {
		entries := append([]string{"1.2.3.4"}, fuzzLines(nodes)...)
		lines := fuzzLines(sent)
		for i, node := range entries {
			added := [...]string{"for=" + quoted(node), "host=" + quoted(text) + ";FOR=" + quoted(node), "For=" + quoted(node) + ";x=" + quoted(text)}[i%3]
			if last := len(lines) - 1; oneLine && last >= 0 {
				lines[last] += ", " + added
			} else {
				lines = append(lines, added)
			}
		}
		got, err := key.Of(forwardedRequest(peer, "Forwarded", lines))
		if err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		checkText(t, got)
		if want := slowClient(peer, entries); got != want {
			t.Errorf("got %q of %q %q, want %q", got, peer, lines, want)
		}
	})
}

// A client controls its own lines, and the text before the comma where the proxy
// appends. The client is the address that the proxy has seen: never the proxy,
// nor an address that the client has made up.
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
			if got != "ip=1.2.3.4" {
				t.Errorf("got %q of %q, want the client", got, r.Header["Forwarded"])
			}
		}
	})
}
