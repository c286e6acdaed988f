package keyfunc

import "strings"

// Text returns the text of a key, for a console.Subject or a table of overrides. The kind stands before the '=' of
// the key, such as "usr" or "hdr.x-tenant". Put '|' between the texts of a [Join]. Address an IPv6 client by
// console.Subject.IP, because its key is a prefix.
func Text(kind, value string) string {
	return string(appendEscaped([]byte(kind+"="), value))
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s to dst. It writes %XX for all bytes that are not plain. No other s has this result.
func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isPlain[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// isPlain tells which bytes keys hold as they are: those from 0x21 to 0x7E without a meaning in keys. '|' ends a part,
// braces are the Redis Cluster hash tag, and '%' begins an escape.
var isPlain = func() (plain [256]bool) {
	for i := range plain {
		plain[i] = isVisible(rune(i)) && !strings.ContainsRune("%|{}", rune(i))
	}
	return plain
}()

// isVisible reports whether c is VCHAR of RFC 5234, appendix B.1.
func isVisible(c rune) bool { return 0x21 <= c && c <= 0x7E }
