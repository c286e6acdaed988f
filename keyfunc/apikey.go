package keyfunc

import (
	"context"
	"net/http"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

const (
	maxAPIKey   = 4096            // bytes
	bearerField = "Authorization" // holds a bearer token
)

// APIKey returns the Key usr=<ID> of the account that owns the API key in a header field. In "Authorization" it reads
// a bearer token; another scheme is [ErrMissing], as is an absent field. An empty field, several lines, more than
// 4096 bytes, and bytes that are not visible ASCII are [ErrMalformed].
//
// lookup returns the account of a key. If its error wraps [ErrUnknown], the key does not exist. Any other error, also
// context.Canceled, means a failed lookup. That error is logged, so it must not contain the key.
//
// Put [Cached] before a database. SECURITY.md has more on keys and guesses.
func APIKey(header string, lookup func(ctx context.Context, key string) (Identity, error)) Key {
	name, err := headerName("APIKey", header)
	misconfigurations := []error{err}
	if lookup == nil {
		misconfigurations = append(misconfigurations, misconfigurationf("APIKey: lookup is nil for %q: "+
			"a key counts only after verification", name))
	}
	read, account := apiKeyIn(name), newLookup(name, lookup)
	challenge := `APIKey header="` + name + `"`
	if name == bearerField {
		challenge = "Bearer"
	}
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		if q.known.ID != "" {
			return q.known.append(dst)
		}
		key, err := read(q.Request)
		if err != nil {
			return nil, "", err
		}
		return account.append(dst, q, key)
	}, keyaccess.Info{Kinds: []string{keyaccess.User}, Challenges: []string{challenge}, Identity: true, Unknown: true}, misconfigurations...)
}

// apiKeyIn returns the function that finds the API key of a request.
func apiKeyIn(name string) func(*http.Request) (string, error) {
	missing := requestError(name, ErrMissing, "")
	several := requestError(name, ErrMalformed, "several field lines")
	long := requestError(name, ErrMalformed, "longer than 4096 bytes")
	bad := requestError(name, ErrMalformed, "empty, or contains bytes that no key has")
	return func(r *http.Request) (string, error) {
		lines := r.Header[name]
		switch {
		case len(lines) == 0:
			return "", missing
		case len(lines) > 1:
			// The handler behind this middleware may choose another line.
			return "", several
		}
		key, valid := lines[0], isVisibleText
		if name == bearerField {
			var ok bool
			if key, ok = cutBearer(lines[0]); !ok {
				return "", missing
			}
			valid = isToken68
		}
		switch {
		case len(key) > maxAPIKey:
			return "", long
		case !valid(key):
			return "", bad
		}
		return key, nil
	}
}

// cutBearer cuts the scheme Bearer and its spaces off a value, and reports
// whether the value has that scheme. A value without any scheme is malformed
// rather than of another scheme: then the token is empty, and ok is true.
func cutBearer(value string) (token string, ok bool) {
	const bearer = "Bearer"
	if n := len(bearer); len(value) > n && value[n] == ' ' && strings.EqualFold(value[:n], bearer) {
		return strings.TrimLeft(value[n:], " "), true
	}
	rest := strings.TrimLeft(value, tokenBytes)
	scheme := value[:len(value)-len(rest)]
	return "", scheme == "" || strings.EqualFold(scheme, bearer)
}

// isToken68 reports whether s is token68 of RFC 9110, section 11.2.
func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("-._~+/", c) < 0 {
			return false
		}
	}
	return s != ""
}

func isVisibleText(s string) bool {
	for i := range len(s) {
		if !isVisible(rune(s[i])) {
			return false
		}
	}
	return s != ""
}
