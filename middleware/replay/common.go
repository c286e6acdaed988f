// Common Log Format, Combined Log Format, and what servers append to them:
//
//	192.0.2.1 - alice [10/Oct/2026:13:55:36 +0200] "GET /v1/orders/1 HTTP/1.1" 200 2326 "referer" "agent"

package replay

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

const commonTime = "02/Jan/2006:15:04:05 -0700"

// parseCommon reads a line up to its status, from what stands in front of the time's bracket
// and behind it. The rest does not matter, except a duration at the end, as Traefik has.
func (p *parser) parseCommon(l *entry, text []byte, bracket int) error {
	rest := text[bracket+1:]
	if len(rest) < len(commonTime)+3 || rest[len(commonTime)] != ']' {
		return errTime
	}
	if string(rest[:len(commonTime)]) != p.text {
		if _, ok := p.parseTime(string(rest[:len(commonTime)])); !ok {
			return errTime
		}
	}
	l.Time = p.at
	rest = bytes.TrimLeft(rest[len(commonTime)+1:], " ")
	if len(rest) == 0 || rest[0] != '"' {
		return errRequest
	}
	end := closingQuote(rest)
	if end < 0 {
		return errRequest
	}
	// One string for all fields: an allocation for each would take longer than parsing.
	begin := len(text) - len(rest)
	all := string(text[:begin+end])
	words, user := lastWord(all[:bracket])
	words, ident := lastWord(words)
	if err := l.setClient(words, ident); err != nil {
		return err
	}
	if user != `""` {
		_ = l.setUser(user)
	}
	if err := l.setRequest(all[begin+1:]); err != nil {
		return err
	}
	if rest = rest[end+1:]; bytes.HasSuffix(rest, []byte("ms")) {
		l.number = string(rest[bytes.LastIndexByte(rest, ' ')+1:])
	}
	return l.setStatus(string(rest[:min(len(rest), len(" 200 "))]))
}

// lastWord cuts the last word off a text.
func lastWord(text string) (before, word string) {
	text = strings.TrimSuffix(text, " ") // an empty word stays
	at := strings.LastIndexByte(text, ' ')
	return text[:at+1], text[at+1:]
}

// setClient reads the address that ends a text. What stands in front of it is a prefix. A
// line with a prefix is refused if it leaves in doubt which word is the client:
//
//   - A host name may be a part of the prefix, and so may an ident other than a hyphen.
//   - Two addresses in a row are a list.
//   - A hyphen tells that the rest may be a user, whose name nginx writes with its spaces:
//     192.0.2.1 - the user 198.51.100.7 - who lies [10/Oct/2026:13:55:36 +0200] ...
func (l *entry) setClient(text, ident string) error {
	prefix, host := lastWord(text)
	l.Address = host
	_, known := ipOf(host)
	if prefix == "" && ident != "" && (known || host == "-" || isHost(host)) {
		return nil
	}
	_, last := lastWord(prefix)
	_, err := netip.ParseAddr(last)
	if !known || ident != "-" || err == nil || strings.HasSuffix(last, ",") || strings.Contains(prefix, " - ") {
		return errAddress
	}
	return nil
}

// setRequest reads a request line. The protocol may be missing, as in HTTP/0.9.
func (l *entry) setRequest(line string) error {
	method, path, ok := strings.Cut(line, " ")
	if !ok {
		return errRequest
	}
	if at := strings.LastIndex(path, " HTTP/"); at >= 0 {
		path = path[:at]
	}
	if strings.IndexByte(path, '\\') >= 0 { // nginx writes \x22, and Apache \"
		if plain, err := strconv.Unquote(`"` + path + `"`); err == nil {
			path = plain
		}
	}
	l.Method, l.Path = method, path
	return nil
}

// setStatus reads the first word of the rest of a line.
func (l *entry) setStatus(rest string) error {
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	status, err := strconv.Atoi(strings.TrimSuffix(word, ".0")) // Envoy sorts numbers as floats
	if err != nil || status < 0 || status > 999 {
		return errStatus
	}
	l.Status = status
	return nil
}

// closingQuote returns the place of the quote that closes a quoted text, or -1. A
// backslash escapes a quote.
func closingQuote[T string | []byte](text T) int {
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
