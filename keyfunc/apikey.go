package keyfunc

import (
	"context"
	"net/http"
	"strings"
)

const maxAPIKey = 4096 // bytes

// APIKey returns the Key usr=<ID> of the account that owns the API key in the
// named header field. Its tier is the account's. The API key itself enters no
// text: a limiter counts the account, however many keys it has.
//
// The field "Authorization" is read as a bearer token (RFC 6750, section 2.1;
// the scheme in any case). Another scheme belongs to other credentials, and
// counts as ErrMissing. In any other field the whole value is the key.
//
// lookup returns the account of a key. It is called once per [Request] and
// value: share one Key among the policies of a Middleware. Handlers do not receive
// the Identity: if they need it, authenticate first and use [User]. Its errors mean:
//
//   - An error that wraps [ErrUnknown]: the key does not exist. The Key's error
//     wraps ErrUnknown, and has a text of its own.
//   - No error and an empty ID: a programming error. The Key's error wraps none
//     of the errors of requests.
//   - Any other error, also context.Canceled: the lookup failed. The Key's
//     error wraps it, and has a method Unavailable() bool that returns true.
//     Package ratelimit logs it, so it must not contain the key.
//
// Answer most lookups from a bounded cache that also remembers unknown keys, as
// the example shows. Give keys 128 random bits, because clients guess. Where
// middleware has already authenticated the client, use [User] instead.
//
// An absent field is [ErrMissing]. An empty field, several field lines, more
// than 4096 bytes, and bytes that are not visible ASCII (for bearer tokens:
// not token68 of RFC 9110, section 11.2) are [ErrMalformed]. A nil lookup and
// an invalid name of a header field are misconfigurations.
func APIKey(header string, lookup func(ctx context.Context, key string) (Identity, error)) Key {
	name, err := headerName("APIKey", header)
	misconfigurations := []error{err}
	if lookup == nil {
		misconfigurations = append(misconfigurations, misconfigurationf("APIKey: lookup is nil for %q: "+
			"a key counts only after verification", name))
	}
	read, account, unknown := newAPIKeyReader(name), newLookup(name, lookup), requestError(name, ErrUnknown, "")
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		key, err := read.key(q.Request)
		if err != nil {
			return nil, "", err
		}
		if q.NoLookup {
			return nil, "", unknown
		}
		return account.append(dst, q, key)
	}, Info{Kinds: []string{"usr"}, Challenges: []string{read.challenge()}, Identity: true}, misconfigurations...)
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
		// The handler behind this middleware may choose the other line.
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
// whether that is the scheme. A value without any scheme is malformed, and
// belongs to no other scheme: then the token is empty.
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
