package keyfunc

import "strings"

// The header Forwarded (RFC 7239) is a list of elements with parameters. The
// parameter "for" of an element is its entry. An element without that
// parameter, or with an obfuscated identifier, has no address.
//
// A client may send an open quote or a backslash before the element that its
// proxy adds to the line. Read from the left, the quote would swallow that
// element. So a line is read from the right: the proxy's own element closes the
// quotes that it opens, and the comma before it ends it, whatever stands there.

// lastUnquoted returns the index of the last sep outside of quotes, or -1.
// Between quotes, a quote behind a backslash is part of the text (RFC 9110,
// section 5.6.4).
func lastUnquoted(s string, sep byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"':
			quoted = !quoted || escaped(s[:i])
		case s[i] == sep && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether the byte behind s is escaped: whether s ends in an odd
// number of backslashes.
func escaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// forwardedFor returns the node of the parameter "for", without quotes. It is
// "" when there is none, and when there are two, because two are ambiguous.
func forwardedFor(element string) string {
	node, found := "", false
	for more := true; more; {
		pair := element
		i := lastUnquoted(element, ';')
		if more = i >= 0; more {
			element, pair = element[:i], element[i+1:]
		}
		name, value, _ := strings.Cut(trimOWS(pair), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found {
			return ""
		}
		node, found = unquote(value), true
	}
	return node
}

// unquote returns the text of a quoted string, and any other value as it is.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		text = append(text, s[i])
	}
	return string(text)
}
