// One line of an access log.

package replay

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A entry is one request of an access log.
type entry struct {
	Time     int64 // µs since 1970: when the request was decided
	Address  string
	User     string // "": none
	Method   string
	Path     string // with the query
	Status   int    // 0: not logged
	Duration time.Duration
	Cost     int64     // in units of the policies with a Cost; -1: not logged
	Settled  []settled // what was settled after the decision; nil: not logged
}

// A settled is what a server settled after it had decided a request: it charged
// Units, or returned them if they are negative.
type settled struct {
	At     time.Time `json:"at"`
	Policy string    `json:"policy"`
	Units  int64     `json:"units"`
}

// A parser reads lines. It remembers what neighbouring lines have in common.
type parser struct {
	second string // of the last line in Common Log Format
	micros int64  // its instant
}

var (
	errTime    = errors.New("no time")
	errAddress = errors.New("no address and no user")
	errRequest = errors.New("no method and path")
	errStatus  = errors.New("no status")
	errForm    = errors.New("neither Common Log Format nor JSON")
)

// parse reads a line of any format. The entry shares no memory with text.
func (p *parser) parse(text []byte) (entry, error) {
	text = bytes.TrimSpace(text)
	l := entry{Cost: -1}
	var err error
	if len(text) > 0 && text[0] == '{' {
		err = l.parseJSON(string(text))
	} else {
		err = p.parseCommon(&l, text)
	}
	if err == nil {
		err = l.check()
	}
	return l, err
}

// check reports the first fact that a replay needs and the line lacks.
func (l *entry) check() error {
	switch {
	case l.Time < minTime || l.Time > maxTime:
		return errTime
	case l.Address == "" && l.User == "":
		return errAddress
	case l.Method == "":
		return errRequest
	}
	var u url.URL
	return l.parseURL(&u)
}

// parseURL parses the path as net/http does: a request to a proxy has a whole URL, and a
// CONNECT has only host:port.
func (l *entry) parseURL(u *url.URL) error {
	text, authority := l.Path, l.Method == http.MethodConnect && !strings.HasPrefix(l.Path, "/")
	if authority {
		text = "http://" + text
	}
	parsed, err := url.ParseRequestURI(text)
	if err != nil || l.Path == "*" && l.Method != http.MethodOptions {
		return errRequest
	}
	*u = *parsed
	if authority {
		u.Scheme = ""
	}
	return nil
}

// The years for which all limiters compute exactly.
var (
	minTime = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	maxTime = time.Date(2252, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)
