package headers

import (
	"encoding/base64"
	"strings"
)

// A kind is a type of structured fields (RFC 9651 section 3.3). Types that only
// extensions have are all kindOther: the scanner checks and skips them.
type kind uint8

const (
	kindOther kind = iota
	kindInteger
	kindString
	kindToken
	kindBytes
)

// A value is a bare item. A Boolean true without a value is kindOther, too.
type value struct {
	kind kind
	n    int64
	s    string
}

type param struct {
	key   string
	value value
}

// A member is a member of a List, or of a Dictionary, which gives it a key.
type member struct {
	key    string
	value  value
	params []param
}

// find returns a parameter. If it occurs twice, the last value counts (section
// 4.2.3.2).
func (m *member) find(key string) (value, bool) {
	for i := len(m.params) - 1; i >= 0; i-- {
		if m.params[i].key == key {
			return m.params[i].value, true
		}
	}
	return value{}, false
}

// A scanner reads structured fields by the algorithms of RFC 9651 section 4.2. Each
// method consumes what it reads, and returns false if that is malformed. No method
// calls itself, so the depth of the stack does not depend on the text.
type scanner struct{ s string }

// parseList reads a List (section 4.2.1). An empty field is an empty list.
func parseList(s string) ([]member, bool) { return parseMembers(s, (*scanner).member) }

// parseDictionary reads a Dictionary (section 4.2.2).
func parseDictionary(s string) ([]member, bool) { return parseMembers(s, (*scanner).entry) }

func parseMembers(s string, next func(*scanner) (member, bool)) (members []member, ok bool) {
	p := &scanner{strings.Trim(s, " ")}
	for p.s != "" {
		m, ok := next(p)
		if !ok {
			return nil, false
		}
		members = append(members, m)
		p.skip(" \t")
		if p.s == "" {
			break
		}
		if !p.take(',') {
			return nil, false
		}
		if p.skip(" \t"); p.s == "" { // a trailing comma
			return nil, false
		}
	}
	return members, true
}

const (
	digits    = "0123456789"
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	letters   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func (p *scanner) skip(set string) { p.s = strings.TrimLeft(p.s, set) }

func (p *scanner) take(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

// while consumes the longest prefix of bytes in a set.
func (p *scanner) while(set string) (prefix string) {
	whole := p.s
	p.skip(set)
	return whole[:len(whole)-len(p.s)]
}

// entry reads a key, and a member behind it.
func (p *scanner) entry() (member, bool) {
	key, ok := p.key()
	if !ok {
		return member{}, false
	}
	m := member{}
	if p.take('=') {
		m, ok = p.member()
	} else {
		m.params, ok = p.params()
	}
	m.key = key
	return m, ok
}

// member reads an item with its parameters. No field of a limit has inner lists.
func (p *scanner) member() (m member, ok bool) {
	if m.value, ok = p.bare(); ok {
		m.params, ok = p.params()
	}
	return m, ok
}

// params reads the parameters of an item (section 4.2.3.2).
func (p *scanner) params() (params []param, ok bool) {
	for p.take(';') {
		p.skip(" ")
		key, ok := p.key()
		if !ok {
			return nil, false
		}
		v := value{}
		if p.take('=') {
			if v, ok = p.bare(); !ok {
				return nil, false
			}
		}
		params = append(params, param{key, v})
	}
	return params, true
}

// key reads a key (section 4.2.3.3).
func (p *scanner) key() (string, bool) {
	if p.s == "" || strings.IndexByte(lowerCase+"*", p.s[0]) < 0 {
		return "", false
	}
	return p.while(lowerCase + digits + "_-.*"), true
}

// bare reads a bare item (section 4.2.3.1).
func (p *scanner) bare() (value, bool) {
	if p.s == "" {
		return value{}, false
	}
	switch c := p.s[0]; {
	case strings.IndexByte(digits+"-", c) >= 0:
		return p.number()
	case c == '"':
		return p.text()
	case strings.IndexByte(letters+"*", c) >= 0:
		return value{kind: kindToken, s: p.while(letters + digits + "!#$%&'*+-.^_`|~:/")}, true
	case c == ':':
		return p.bytes()
	case c == '?':
		p.s = p.s[1:]
		return value{}, p.take('0') || p.take('1')
	case c == '@':
		p.s = p.s[1:]
		v, ok := p.number()
		return value{}, ok && v.kind == kindInteger
	case strings.HasPrefix(p.s, `%"`): // a Display String, whose quotes are escaped as %22
		var closed bool
		_, p.s, closed = strings.Cut(p.s[2:], `"`)
		return value{}, closed
	}
	return value{}, false
}

// number reads an Integer or a Decimal (section 4.2.4).
func (p *scanner) number() (value, bool) {
	negative := p.take('-')
	whole := p.while(digits)
	if whole == "" || len(whole) > 15 {
		return value{}, false
	}
	if p.take('.') {
		fraction := p.while(digits)
		return value{}, len(whole) <= 12 && fraction != "" && len(fraction) <= 3
	}
	n, _ := parseDigits(whole)
	if negative {
		n = -n
	}
	return value{kind: kindInteger, n: n}, true
}

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
