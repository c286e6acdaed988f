package keyfunc

import (
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// maxHeader is the longest value, in bytes, that [Header] takes.
const maxHeader = 1024

// Header returns the Key hdr.<name>=<value>, name in lower case, of a header field that a trusted gateway sets or
// overwrites on every request. An absent or empty field is [ErrMissing]. Several lines, and more than 1024 bytes, are
// [ErrMalformed]. Authorization, Proxy-Authorization, Cookie and Host are misconfigurations.
func Header(name string) Key {
	name, err := headerName("Header", name)
	if slices.Contains([]string{"Authorization", "Proxy-Authorization", "Cookie"}, name) {
		err = misconfigurationf("Header: %q carries secrets, which must not be stored in the clear; use APIKey", name)
	}
	kind := keyaccess.Header + "." + string(appendEscaped(nil, strings.ToLower(name)))
	prefix := kind + "="
	missing := requestError(name, ErrMissing, "")
	several := requestError(name, ErrMalformed, "several field lines")
	long := requestError(name, ErrMalformed, "longer than 1024 bytes")
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		lines := q.Header[name]
		switch {
		case len(lines) > 1:
			return nil, "", several
		case len(lines) == 0 || lines[0] == "":
			return nil, "", missing
		case len(lines[0]) > maxHeader:
			return nil, "", long
		}
		return appendEscaped(append(dst, prefix...), lines[0]), "", nil
	}, keyaccess.Info{Kinds: []string{kind}}, err)
}

// headerName returns the name as [http.Header] spells it, and the
// misconfiguration of a name that no Header holds.
func headerName(subject, name string) (string, error) {
	if !consistsOf(name, tokenBytes) {
		return name, misconfigurationf("%s: %q is not the name of a header field", subject, name)
	}
	name = http.CanonicalHeaderKey(name)
	if name == "Host" {
		return name, misconfigurationf("%s: %q is not in Request.Header; use Custom and Request.Host", subject, name)
	}
	return name, nil
}

const (
	lowerCase  = "abcdefghijklmnopqrstuvwxyz"
	digits     = "0123456789"
	alphaNum   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	tokenBytes = alphaNum + "!#$%&'*+-.^_`|~" // RFC 9110, section 5.6.2
)

// consistsOf reports whether s is not empty and has only bytes of a set of ASCII.
func consistsOf(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }
