package headers_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// An independent reader of Lists of Items, after the algorithms of RFC 9651
// section 4.2. It is stricter than they are where the writer must be: Base64 has
// its padding and no stray bits. It reads none of the types that the draft's
// fields never have: inner lists, dates, display strings.

type sfItem struct {
	value  any // int64, sfDecimal, string, sfToken, []byte or bool
	params map[string]any
	order  []string // of the keys
}

type (
	sfToken   string
	sfDecimal string
)

type sfReader struct{ s string }

type sfError string

func (e sfError) Error() string { return string(e) }

// readList reads the field whose lines are given (section 4.2).
func readList(lines []string) (items []sfItem, err error) {
	defer func() {
		if e, failed := recover().(sfError); failed {
			items, err = nil, e
		}
	}()
	r := &sfReader{strings.Trim(strings.Join(lines, ", "), " ")}
	for r.s != "" {
		items = append(items, r.item())
		r.skip(" \t")
		if r.s == "" {
			return items, nil
		}
		if !r.take(',') {
			r.fail("want a comma")
		}
		r.skip(" \t")
		if r.s == "" {
			r.fail("trailing comma")
		}
	}
	return items, nil
}

func (r *sfReader) fail(why string) { panic(sfError(fmt.Sprintf("%s at %q", why, r.s))) }

func (r *sfReader) skip(set string) { r.s = strings.TrimLeft(r.s, set) }

func (r *sfReader) take(c byte) bool {
	if r.s == "" || r.s[0] != c {
		return false
	}
	r.s = r.s[1:]
	return true
}

// while takes the longest prefix of bytes that satisfy is.
func (r *sfReader) while(is func(byte) bool) string {
	n := 0
	for n < len(r.s) && is(r.s[n]) {
		n++
	}
	var prefix string
	prefix, r.s = r.s[:n], r.s[n:]
	return prefix
}

// item is section 4.2.3, with the parameters of 4.2.3.2.
func (r *sfReader) item() sfItem {
	item := sfItem{value: r.bare(), params: map[string]any{}}
	for r.take(';') {
		r.skip(" ")
		key := r.key()
		var value any = true
		if r.take('=') {
			value = r.bare()
		}
		if _, twice := item.params[key]; !twice {
			item.order = append(item.order, key)
		}
		item.params[key] = value
	}
	return item
}

// key is section 4.2.3.3.
func (r *sfReader) key() string {
	if r.s == "" || r.s[0] != '*' && !isLower(r.s[0]) {
		r.fail("want a key")
	}
	return r.while(func(c byte) bool {
		return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0
	})
}

// bare is section 4.2.3.1.
func (r *sfReader) bare() any {
	if r.s == "" {
		r.fail("want an item")
	}
	switch c := r.s[0]; {
	case c == '-' || isDigit(c):
		return r.number()
	case c == '"':
		return r.str()
	case c == '*' || isAlpha(c):
		return sfToken(r.while(func(c byte) bool {
			return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
		}))
	case c == ':':
		return r.bytes()
	case c == '?':
		return r.boolean()
	}
	r.fail("unknown type")
	return nil
}

// number is section 4.2.4.
func (r *sfReader) number() any {
	sign := int64(1)
	if r.take('-') {
		sign = -1
	}
	digits := r.while(isDigit)
	if digits == "" {
		r.fail("want a digit")
	}
	if r.take('.') {
		fraction := r.while(isDigit)
		if len(digits) > 12 || fraction == "" || len(fraction) > 3 {
			r.fail("bad decimal")
		}
		return sfDecimal(digits + "." + fraction)
	}
	if len(digits) > 15 {
		r.fail("integer of more than 15 digits")
	}
	var n int64
	for _, c := range []byte(digits) {
		n = 10*n + int64(c-'0')
	}
	return sign * n
}

// str is section 4.2.5.
func (r *sfReader) str() string {
	var b strings.Builder
	for r.take('"'); r.s != ""; {
		c := r.s[0]
		r.s = r.s[1:]
		switch {
		case c == '\\':
			if r.s == "" || r.s[0] != '"' && r.s[0] != '\\' {
				r.fail("bad escape")
			}
			b.WriteByte(r.s[0])
			r.s = r.s[1:]
		case c == '"':
			return b.String()
		case c < 0x20 || c >= 0x7F:
			r.fail("bad character of a string")
		default:
			b.WriteByte(c)
		}
	}
	r.fail("unterminated string")
	return ""
}

// bytes is section 4.2.7.
func (r *sfReader) bytes() []byte {
	r.take(':')
	text, rest, found := strings.Cut(r.s, ":")
	if !found || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		r.fail("bad byte sequence")
	}
	value, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		r.fail(err.Error())
	}
	r.s = rest
	return value
}

// boolean is section 4.2.8.
func (r *sfReader) boolean() bool {
	r.take('?')
	if r.take('1') {
		return true
	}
	if !r.take('0') {
		r.fail("bad boolean")
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c | 0x20) }

// TestReader makes sure that the reader rejects malformed lists. A reader that
// accepts every list would prove nothing about the writer.
func TestReader(t *testing.T) {
	valid := map[string]int{
		``:                                  0,
		`  "a";r=1  `:                       1,
		"\"a\";r=1\t,\t\"b\";r=2":           2,
		`"a"; r=1; t=2`:                     1,
		`"a";r=1;x=?0;y;z=tok;d=1.5;s="q"`:  1,
		`"per \"user\" \\ x";r=3;t=4`:       1,
		`"a";r=999999999999999;pk=::`:       1,
		`"a";r=007, "b";r=-0;pk=:aGk=:`:     2,
		`"burst";q=100;w=60,"d";q=1;w=8640`: 2,
	}
	for in, want := range valid {
		if items, err := readList([]string{in}); err != nil || len(items) != want {
			t.Errorf("%s: got %d items, %v, want %d", in, len(items), err, want)
		}
	}
	invalid := []string{
		`"a";r=1000000000000000`, `"a";r=1,`, `,"a";r=1`, `"a";r=1,,"b";r=2`, `"a" ;r=1`, `"a";r =1`,
		`"a";r= 1`, `"a";R=1`, `"a";r=1;`, `"a;r=1`, `"a\b";r=1`, `"é";r=1`, "\"a\tb\";r=1", `'a';r=1`,
		`"a";r=1;pk=:aGk:`, `"a";r=1;pk=:aGk=`, `"a";r=1;pk=:_-Ah:`, `"a";r=1;pk=:=aGk:`, `("a");r=1`,
		`"a";r=1 "b";r=2`, `"a";r=@`, `"a";r=1.`, `"a";r=--1`, "\"a\";pk=:aG\nk=:", `"a";x=?2`, `"a";r=`,
	}
	for _, in := range invalid {
		if _, err := readList([]string{in}); err == nil {
			t.Errorf("%s: got no error", in)
		}
	}
	if _, err := readList([]string{`"a";r=1`, ``, `"b";r=2`}); err == nil {
		t.Error("an empty line between lines: got no error")
	}
}
