package keyfunc

import (
	"context"
	"net/http"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

const maxAPIKey = 4096 // bytes

// APIKey returns the Key usr=<ID> of the account that owns the API key in a header field. In "Authorization" it reads
// a bearer token; another scheme is [ErrMissing], as is an absent field. An empty field, several lines, more than
// 4096 bytes, and bytes that are not visible ASCII are [ErrMalformed].
//
// lookup returns the account of a key. If its error wraps [ErrUnknown], the key does not exist. Any other error, also
// context.Canceled, means a failed lookup. That error is logged, so it must not contain the key. An empty ID without
// an error is a programming error.
//
// Put [Cached] before a database. SECURITY.md has more on keys and guesses.
func APIKey(header string, lookup func(ctx context.Context, key string) (Identity, error)) Key {
	name, err := headerName("APIKey", header)
	misconfigurations := []error{err}
	if lookup == nil {
		misconfigurations = append(misconfigurations, misconfigurationf("APIKey: lookup is nil for %q: "+
			"a key counts only after verification", name))
	}
	read, account := newAPIKeyReader(name), newLookup(name, lookup)
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		if q.known.ID != "" {
			return q.known.append(dst)
		}
		key, err := read.key(q.Request)
		if err != nil {
			return nil, "", err
		}
		return account.append(dst, q, key)
	}, keyaccess.Info{Kinds: []string{keyaccess.User}, Challenges: []string{read.challenge()}, Identity: true, Unknown: true}, misconfigurations...)
}

// An apiKeyReader finds the API key of a request.
type apiKeyReader struct {
	name                        string
	bearer                      bool
	missing, several, long, bad error
}

func newAPIKeyReader(name string) *apiKeyReader {
	return &apiKeyReader{
		name:    name,
		bearer:  name == "Authorization",
		missing: requestError(name, ErrMissing, ""),
		several: requestError(name, ErrMalformed, "several field lines"),
		long:    requestError(name, ErrMalformed, "longer than 4096 bytes"),
		bad:     requestError(name, ErrMalformed, "empty, or contains bytes that no key has"),
	}
}

// challenge returns the challenge that asks for the key.
func (a *apiKeyReader) challenge() string {
	if a.bearer {
		return "Bearer"
	}
	return `APIKey header="` + a.name + `"`
}

func (a *apiKeyReader) key(r *http.Request) (string, error) {
	lines := r.Header[a.name]
	switch {
	case len(lines) == 0:
		return "", a.missing
	case len(lines) > 1:
		// The handler behind this middleware may choose another line.
		return "", a.several
	}
	key, valid := lines[0], isVisibleText
	if a.bearer {
		var ok bool
		if key, ok = cutBearer(lines[0]); !ok {
			return "", a.missing
		}
		valid = isToken68
	}
	switch {
	case len(key) > maxAPIKey:
		return "", a.long
	case !valid(key):
		return "", a.bad
	}
	return key, nil
}

// cutBearer cuts the scheme Bearer and its spaces off a value, and reports
// whether the value has that scheme. A value without any scheme is malformed
// rather than of another scheme: then the token is empty, and ok is true.
func cutBearer(value string) (token string, ok bool) {
	n := 0
	for n < len(value) && isTokenByte(value[n]) {
		n++
	}
	if n == 0 {
		return "", true
	}
	if !strings.EqualFold(value[:n], "Bearer") {
		return "", false
	}
	token = strings.TrimLeft(value[n:], " ")
	if len(token) == len(value)-n {
		return "", true // no space follows the scheme
	}
	return token, true
}

// isToken68 reports whether s is token68 of RFC 9110, section 11.2.
func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := 0; i < len(s); i++ {
		if !isAlphaNum(s[i]) && strings.IndexByte("-._~+/", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

func isVisibleText(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isVisible(s[i]) {
			return false
		}
	}
	return s != ""
}
