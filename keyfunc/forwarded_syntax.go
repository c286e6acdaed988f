package keyfunc

import "strings"

// The header Forwarded (RFC 7239) is a list of elements with parameters. The
// parameter "for" of an element is its entry. An element without that
// parameter, or with an obfuscated identifier, has no address.
//
// A client may send an open quote, so that it swallows the comma before the
// element that the proxy adds. So the quotes of each line must be sound by
// themselves. Otherwise the header does not count, and the client is the peer.

// soundQuotes reports whether each quoted string of the line begins right
// after a '=' and ends before a delimiter. It takes no backslashes: no address
// needs one, and without them quotes can be counted from either end.
func soundQuotes(line string) bool {
	for {
		i := strings.IndexAny(line, `"\`)
		if i < 0 {
			return true
		}
		if line[i] == '\\' || i == 0 || line[i-1] != '=' {
			return false
		}
		line = line[i+1:]
		end := strings.IndexAny(line, `"\`)
		if end < 0 || line[end] == '\\' {
			return false
		}
		line = line[end+1:]
		if line != "" && strings.IndexByte(" \t,;", line[0]) < 0 {
			return false
		}
	}
}

// lastUnquoted returns the index of the last sep outside quotes, or -1.
func lastUnquoted(s string, sep byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return i
		}
	}
	return -1
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

// unquote removes the quotes around s, if there are two.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
