// Common Log Format, Combined Log Format, and what servers append to them:
//
//	192.0.2.1 - alice [10/Oct/2026:13:55:36 +0200] "GET /v1/orders/1 HTTP/1.1" 200 2326 "referer" "agent"

package replay

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

const commonTime = "02/Jan/2006:15:04:05 -0700"

// parseCommon reads a line up to its status. The rest does not matter.
func (p *parser) parseCommon(l *entry, text []byte) error {
	open := bytes.Index(text, []byte(" ["))
	if open < 0 {
		return errForm
	}
	clients, rest := text[:open], text[open+2:]
	if len(rest) < len(commonTime)+3 || rest[len(commonTime)] != ']' {
		return errTime
	}
	if err := p.setSecond(l, rest[:len(commonTime)]); err != nil {
		return err
	}
	rest = bytes.TrimLeft(rest[len(commonTime)+1:], " ")
	if len(rest) == 0 || rest[0] != '"' {
		return errRequest
	}
	end := closingQuote(rest)
	if end < 0 {
		return errRequest
	}
	// One string for all fields: an allocation for each would take longer than parsing.
	all := string(clients) + string(rest[1:end])
	names, request := all[:len(clients)], all[len(clients):]
	l.Address, names, _ = strings.Cut(names, " ")
	if _, user, _ := strings.Cut(names, " "); user != "-" {
		l.User = user
	}
	l.Method, request, _ = strings.Cut(request, " ")
	if at := strings.LastIndex(request, " HTTP/"); at >= 0 {
		request = request[:at]
	}
	if strings.IndexByte(request, '\\') >= 0 {
		request = unescape(request)
	}
	l.Path = request
	if l.Method == "-" {
		return errRequest // the client sent none
	}
	return l.setStatus(rest[end+1:])
}

// setSecond parses the time, unless the line before had the same.
func (p *parser) setSecond(l *entry, text []byte) error {
	if string(text) != p.second {
		t, err := time.Parse(commonTime, string(text))
		if err != nil {
			return errTime
		}
		p.second, p.micros = string(text), t.UnixMicro()
	}
	l.Time = p.micros
	return nil
}

// setStatus reads the first number of the rest of a line.
func (l *entry) setStatus(rest []byte) error {
	rest = bytes.TrimLeft(rest, " ")
	if at := bytes.IndexByte(rest, ' '); at >= 0 {
		rest = rest[:at]
	}
	status, err := strconv.Atoi(string(rest))
	if err != nil || status < 0 || status > 999 {
		return errStatus
	}
	l.Status = status
	return nil
}

// closingQuote returns the place of the quote that closes a quoted text, or -1. A
// backslash escapes a quote.
func closingQuote(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape undoes the escapes of nginx (\x22) and of Apache (\").
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'x' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
