package replay

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// An entry is one request of an access log.
type entry struct {
	Time     int64  // µs since 1970: when the request was decided
	Address  string // of the client
	Unknown  bool   // the Address is no IP address
	User     string // "": none
	Method   string
	Path     string // with the query
	Status   int    // 0: not logged
	Duration time.Duration
	Timed    bool      // the Duration was logged
	Cost     int64     // in units of the policies with a Cost; -1: not logged
	Settled  []settled // what was settled after the decision; nil: not logged

	url    *url.URL      // of the Path
	rank   int           // how surely the Address so far is the client's
	number string        // a duration whose unit is not known yet
	unit   time.Duration // of the number; 0: the file's
	inner  string        // a line that a container runtime has wrapped
}

// A settled is what a server settled after it had decided a request: it charged
// Units, or returned them if they are negative.
type settled struct {
	At     time.Time `json:"at"`
	Policy string    `json:"policy"`
	Units  int64     `json:"units"`
}

// A parser reads the lines of one file. It remembers what neighbouring lines have in common.
type parser struct {
	text    string // of the last time that was no number
	at      int64  // its instant
	layout  string
	columns []string
	unit    time.Duration // of durations that name none; 0: seconds
	numbers []string      // such durations, while a sample is read
	sampled bool
}

var (
	errTime    = errors.New("no time")
	errAddress = errors.New("not exactly one address of a client, and no user")
	errRequest = errors.New("no method and path")
	errStatus  = errors.New("no status")
	errForm    = errors.New("no known format of access logs")
	errNone    = errors.New("a line that is no request, as its format says")
)

var mark = []byte("\xef\xbb\xbf") // a byte-order mark

// parse reads a line of any format. The entry shares no memory with text.
func (p *parser) parse(text []byte) (*entry, error) {
	l := &entry{Cost: -1}
	err := p.parseAny(l, bytes.TrimSpace(bytes.TrimPrefix(text, mark)))
	if err == nil && l.inner != "" && l.Method == "" {
		wrapped := l.inner
		*l = entry{Cost: -1}
		err = p.parseAny(l, bytes.TrimSpace([]byte(wrapped)))
	}
	l.inner = ""
	if err == nil {
		p.setDuration(l)
		err = l.check()
	}
	return l, err
}

// parseAny finds out the format. Text in front of the known beginnings is a prefix: of
// syslog, of a container runtime, or the name of a virtual host.
func (p *parser) parseAny(l *entry, text []byte) error {
	text = withoutSyslog(text)
	switch {
	case len(text) == 0:
		return errForm
	case text[0] == '{':
		return p.parseJSON(l, text)
	case text[0] == '#':
		return p.parseDirective(string(text))
	case p.columns != nil:
		return p.parseColumns(l, string(text))
	}
	for i, c := range text {
		rest := text[i+1:]
		switch {
		case c == '{' && bytes.HasPrefix(rest, []byte(`"`)) && text[len(text)-1] == '}':
			return p.parseJSON(l, text[i:])
		case c == '"' && !bytes.HasPrefix(rest, []byte(`"`)) && (i == 0 || text[i-1] != '"'): // "" is an empty user
			return p.parseQuoted(l, string(text))
		case c != '[' || len(rest) < 25:
		case rest[2] == '/' && rest[6] == '/' && rest[24] == ']':
			return p.parseHAProxy(l, string(text[:i]), string(rest))
		case rest[2] == '/' && rest[6] == '/':
			return p.parseCommon(l, text, i)
		case rest[4] == '-' && rest[10] == 'T':
			return p.parseEnvoy(l, string(rest))
		case bytes.HasPrefix(rest, []byte("GIN] ")):
			return p.parseGin(l, string(rest))
		}
	}
	return p.parseQuoted(l, string(text))
}

// withoutSyslog cuts off a priority of syslog, and the header of RFC 5424 behind it, whose
// absent parts are hyphens:
//
//	<134>1 2026-10-10T11:55:36.25Z host nginx 7 - - 192.0.2.1 ...
func withoutSyslog(text []byte) []byte {
	end := bytes.IndexByte(text, '>')
	if end < 0 || end > len("<191") || text[0] != '<' {
		return text
	}
	text = text[end+1:]
	rest, header := bytes.CutPrefix(text, []byte("1 "))
	if !header {
		return text
	}
	for range 5 { // time, host, program, process, kind of message
		_, rest, _ = bytes.Cut(rest, []byte(" "))
	}
	data := "- "
	if bytes.HasPrefix(rest, []byte("[")) {
		data = "] "
	}
	_, rest, _ = bytes.Cut(rest, []byte(data))
	return bytes.TrimPrefix(rest, mark)
}

// check reports the first fact that a replay needs and the line lacks.
func (l *entry) check() error {
	switch {
	case l.Time < minTime || l.Time > maxTime:
		return errTime
	case !l.checkAddress():
		return errAddress
	case l.Method == "":
		return errRequest
	}
	return l.parseURL()
}

// checkAddress reports whether it is certain who sent the request. A host name is, too,
// although limits by address cannot tell it from others.
func (l *entry) checkAddress() bool {
	address, ok := ipOf(l.Address)
	switch {
	case ok:
		l.Address = address
	case isHost(l.Address):
		l.Unknown = true
	default:
		l.Address, l.Unknown = "", true
		return l.User != ""
	}
	return true
}

// ipOf returns the IP address in the address of a line, and whether there is one. Servers
// also log a port, the brackets of IPv6, or a prefix that counts as one client.
func ipOf(address string) (string, bool) {
	if address == "" {
		return "", false
	}
	if _, err := netip.ParseAddr(address); err == nil {
		return address, true
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	address, _, _ = strings.Cut(address, "/")
	address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	_, err := netip.ParseAddr(address)
	return address, err == nil
}

// isHost reports whether a word is a host name: it has a letter, and no character that
// host names do not have.
func isHost(word string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.ContainsAny(word, letters) && strings.Trim(word, letters+"0123456789.-_") == ""
}

// parseURL parses the path as net/http does: a request to a proxy has a whole URL, and a
// CONNECT has only host:port.
func (l *entry) parseURL() error {
	text, authority := l.Path, l.Method == http.MethodConnect && !strings.HasPrefix(l.Path, "/")
	if authority {
		text = "http://" + text
	}
	parsed, err := url.ParseRequestURI(text)
	if err != nil || l.Path == "*" && l.Method != http.MethodOptions {
		return errRequest
	}
	if authority {
		parsed.Scheme = ""
	}
	l.url = parsed
	return nil
}

// The years for which all limiters compute exactly.
var (
	minTime = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	maxTime = time.Date(2252, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)
