// The types of structured fields that are text in quotes or between colons.

package headers

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// text reads a String (section 4.2.5).
func (p *scanner) text() (value, bool) {
	var b strings.Builder
	for i := 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.s = p.s[i+1:]
			return value{kind: kindString, s: b.String()}, true
		case c == '\\':
			if i++; i == len(p.s) || p.s[i] != '"' && p.s[i] != '\\' {
				return value{}, false
			}
			b.WriteByte(p.s[i])
		case c < 0x20 || c > 0x7E:
			return value{}, false
		default:
			b.WriteByte(c)
		}
	}
	return value{}, false
}

// bytes reads a Byte Sequence (section 4.2.7). The section asks parsers to accept
// missing padding and stray bits. Go's decoder skips line breaks, so bytes checks the
// alphabet first.
func (p *scanner) bytes() (value, bool) {
	text, rest, found := strings.Cut(p.s[1:], ":")
	encoding := base64.RawStdEncoding
	if strings.HasSuffix(text, "=") {
		encoding = base64.StdEncoding
	}
	decoded, err := encoding.DecodeString(text)
	if !found || err != nil || strings.ContainsAny(text, "\r\n") {
		return value{}, false
	}
	p.s = rest
	return value{kind: kindBytes, s: string(decoded)}, true
}

// display reads a Display String behind its percent sign (section 4.2.10).
func (p *scanner) display() bool {
	if !p.take('"') {
		return false
	}
	var decoded []byte
	for i := 0; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.s = p.s[i+1:]
			return utf8.Valid(decoded)
		case c < 0x20 || c > 0x7E:
			return false
		case c == '%':
			if i+2 >= len(p.s) || strings.ContainsAny(p.s[i+1:i+3], "ABCDEF") {
				return false
			}
			octet, err := hex.DecodeString(p.s[i+1 : i+3])
			if err != nil {
				return false
			}
			decoded = append(decoded, octet...)
			i += 2
		default:
			decoded = append(decoded, c)
		}
	}
	return false
}
