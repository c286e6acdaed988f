package keyfunc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hopsTests feed the table test and the fuzz seeds. The peer is 10.0.0.1,
// which no option trusts.
var hopsTests = []struct {
	name  string
	hops  int
	lines []string
	want  string
}{
	{"one proxy", 1, []string{"1.2.3.4"}, "1.2.3.4"},
	{"one proxy, forged left", 1, []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
	{"one proxy, forged line", 1, []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
	{"two proxies", 2, []string{"6.6.6.6, 1.2.3.4, 10.0.0.2"}, "1.2.3.4"},
	{"two proxies, exactly", 2, []string{"1.2.3.4, 10.0.0.2"}, "1.2.3.4"},
	{"two proxies, two lines", 2, []string{"6.6.6.6, 1.2.3.4", "10.0.0.2"}, "1.2.3.4"},
	{"three proxies, three lines", 3, []string{"6.6.6.6,1.2.3.4", "10.0.0.3", "10.0.0.2"}, "1.2.3.4"},
	{"most", 32, []string{"6.6.6.6, 1.2.3.4" + strings.Repeat(", 10.0.0.2", 31)}, "1.2.3.4"},
	{"garbage elsewhere", 2, []string{"garbage, 1.2.3.4, unknown"}, "1.2.3.4"},

	{"no header", 1, nil, "10.0.0.1"},
	{"too few", 2, []string{"6.6.6.6"}, "unknown"},
	{"too few in two lines", 3, []string{"6.6.6.6", "6.6.6.7"}, "unknown"},
	{"one too few", 32, []string{strings.Repeat("6.6.6.6,", 30) + "6.6.6.6"}, "unknown"},
	{"empty", 1, []string{""}, "unknown"},
	{"an empty line counts", 2, []string{"1.2.3.4", ""}, "1.2.3.4"},
	{"an empty entry counts", 2, []string{"6.6.6.6, 1.2.3.4,"}, "1.2.3.4"},
	{"empty at the place", 2, []string{"6.6.6.6, , 10.0.0.2"}, "unknown"},
	{"garbage at the place", 2, []string{"6.6.6.6, garbage, 10.0.0.2"}, "unknown"},
	{"unknown at the place", 1, []string{"6.6.6.6, unknown"}, "unknown"},

	{"port", 1, []string{"6.6.6.6, 1.2.3.4:80"}, "1.2.3.4"},
	{"IPv6", 1, []string{"2001:db8:1:2::3"}, "2001:db8:1:2::/64"},
	{"IPv6 with port", 1, []string{"[2001:db8:1:2::3]:80"}, "2001:db8:1:2::/64"},
	{"mapped", 1, []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
	{"zone", 1, []string{"2001:db8::1%x/../"}, "2001:db8::/64"},
}

// asForwarded writes entries of X-Forwarded-For as elements of Forwarded.
func asForwarded(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		elements := strings.Split(line, ",")
		for j, e := range elements {
			elements[j] = fmt.Sprintf("proto=https; for=\"%s\"", strings.Trim(e, " \t"))
		}
		lines[i] = strings.Join(elements, ", ")
	}
	return lines
}

func TestHops(t *testing.T) {
	for _, tt := range hopsTests {
		t.Run(tt.name, func(t *testing.T) {
			for header, lines := range map[string][]string{
				"": tt.lines, "X-Real-IP": tt.lines, "forwarded": asForwarded(tt.lines),
			} {
				key := IP(&IPOptions{Hops: tt.hops, Header: header})
				name := header
				if header == "" {
					name = "X-Forwarded-For"
				}
				got, err := key.Of(forwardedRequest(proxy, name, lines))
				if want := strings.ReplaceAll(tt.want, `"`, ""); err != nil || got != "ip="+want {
					t.Errorf("got %q, %v of %s, want %q", got, err, name, "ip="+want)
				}
			}
		})
	}
}

// Damaged quotes of the client hide no comma of its proxies.
func TestHopsWithDamagedQuotes(t *testing.T) {
	key := IP(&IPOptions{Hops: 1, Header: "Forwarded"})
	for _, lines := range [][]string{{`for=6.6.6.6;x=", for=1.2.3.4`}, {`for="`, `for=1.2.3.4`}, {`for=1.2.3.4;x="a\"b"`}} {
		if got, err := key.Of(forwardedRequest(proxy, "Forwarded", lines)); err != nil || got != "ip=1.2.3.4" {
			t.Errorf("got %q, %v of %q, want the client", got, err, lines)
		}
	}
}

// The last proxy may be the peer of a Unix socket.
func TestHopsBehindAUnixSocket(t *testing.T) {
	key := IP(&IPOptions{Hops: 1})
	if got, err := key.Of(forwardedRequest("@", "X-Forwarded-For", []string{"6.6.6.6, 1.2.3.4"})); err != nil || got != "ip=1.2.3.4" {
		t.Errorf("got %q, %v, want %q", got, err, "ip=1.2.3.4")
	}
	if got, err := key.Of(forwardedRequest("@", "", nil)); err != nil || got != "ip=unknown" {
		t.Errorf("got %q, %v without the header, want %q", got, err, "ip=unknown")
	}
}

// slowHops counts entries that were split beforehand.
func slowHops(peer string, hops int, entries []string) string {
	if len(entries) == 0 {
		return slowClient(peer, nil)
	}
	if len(entries) >= hops {
		if a, ok := slowAddr(entries[len(entries)-hops]); ok {
			return slowText(a)
		}
	}
	return "ip=unknown"
}

func FuzzHops(f *testing.F) {
	for _, tt := range hopsTests {
		f.Add(proxy, tt.hops, strings.Join(tt.lines, "\n"))
		f.Add("@", tt.hops, strings.Join(tt.lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, peer string, hops int, header string) {
		lines := fuzzLines(header)
		hops = int(uint(hops-1)%maxHops) + 1
		got, err := IP(&IPOptions{Hops: hops}).Of(forwardedRequest(peer, "X-Forwarded-For", lines))
		if err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		checkText(t, got)
		if want := slowHops(peer, hops, slowList(lines)); got != want {
			t.Errorf("got %q of %q %d %q, want %q", got, peer, hops, lines, want)
		}
	})
}

// For any header of the client: behind n proxies the client is the address that
// the outermost proxy has seen.
func FuzzHopsCannotBeForged(f *testing.F) {
	f.Add("", 1)
	for _, tt := range hopsTests {
		f.Add(strings.Join(tt.lines, "\n"), tt.hops)
	}
	f.Fuzz(func(t *testing.T, sent string, hops int) {
		hops = int(uint(hops-1)%maxHops) + 1
		for _, ownLine := range []bool{true, false} {
			lines := append(fuzzLines(sent), "")
			last := &lines[len(lines)-1]
			if !ownLine && len(lines) > 1 {
				lines = lines[:len(lines)-1]
				last = &lines[len(lines)-1]
				*last += ", "
			}
			*last += "1.2.3.4" + strings.Repeat(", 10.0.0.2", hops-1)
			got, err := IP(&IPOptions{Hops: hops}).Of(forwardedRequest(proxy, "X-Forwarded-For", lines))
			if err != nil || got != "ip=1.2.3.4" {
				t.Errorf("got %q, %v of %q, want %q", got, err, lines, "ip=1.2.3.4")
			}
		}
	})
}
