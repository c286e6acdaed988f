package keyfunc

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/http"
	"strings"
	"sync"
)

const (
	minSecret = 16   // bytes
	maxAPIKey = 4096 // bytes
	macBytes  = 16   // of the 32 of HMAC-SHA-256; 22 characters of base64url
)

// APIKey returns the Key of the API key in the named header field, once known
// has said that it exists. The key itself is never stored: the text is key=
// and 128 bits of HMAC-SHA-256(secret, key) in base64url, 22 characters.
//
// The field "Authorization" is read as a bearer token (RFC 6750, section 2.1;
// the scheme in any case); another scheme is somebody else's credentials, and
// counts as ErrMissing. In any other field the whole value is the key.
//
// The secret belongs to the deployment, the same on all instances; it has 16
// bytes or more, and is copied. Another secret makes other keys, so changing
// it starts all counters afresh.
//
// known is called once per request and Key, so it should answer from memory;
// it must be safe for concurrent use. It is what makes a key an identity:
// without it a client would open a fresh bucket with each key it invents. So
// nil is a mistake.
//
// An absent field is [ErrMissing]. An empty one, several field lines, more
// than 4096 bytes, and bytes that are not visible ASCII (for bearer tokens:
// not token68 of RFC 9110, section 11.2) are [ErrMalformed]. A key that is
// not known is [ErrUnknown].
func APIKey(header string, secret []byte, known func(key string) bool) Key {
	name, mistake := headerName("APIKey", header)
	mistakes := []error{mistake}
	if len(secret) < minSecret {
		mistakes = append(mistakes, mistakef("APIKey: the secret for %q has %d bytes, it needs %d or more",
			name, len(secret), minSecret))
	}
	if known == nil {
		mistakes = append(mistakes, mistakef("APIKey: known is nil for %q: a key counts only when it is verified", name))
	}
	read := newAPIKeyReader(name)
	mac := newMACPool(secret)
	unknown := requestError(name, ErrUnknown, "")
	k := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		key, err := read.key(r)
		if err != nil {
			return nil, err
		}
		if !known(key) {
			return nil, unknown
		}
		return mac.append(append(dst, "key="...), key), nil
	}, mistakes...)
	k.challenges = []string{read.challenge()}
	return k
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
		bad:     requestError(name, ErrMalformed, "empty, or bytes that do not belong there"),
	}
}

// challenge says how to send the key.
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
		// Which one counts? Whatever stands behind us may choose the other.
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

// cutBearer returns what follows the scheme Bearer and its spaces, and whether
// that is the scheme. Without any scheme the value is malformed, rather than
// somebody else's: then it is returned as no token at all.
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
		return "", true // no space: nothing, or damage, follows the scheme
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

// A macPool keeps HMAC states, since making one costs more than using it.
type macPool struct{ states sync.Pool }

type macState struct {
	hash hash.Hash
	in   []byte
	sum  [sha256.Size]byte
}

func newMACPool(secret []byte) *macPool {
	secret = bytes.Clone(secret)
	return &macPool{sync.Pool{New: func() any {
		return &macState{hash: hmac.New(sha256.New, secret)}
	}}}
}

// append appends the truncated MAC of key to dst.
func (p *macPool) append(dst []byte, key string) []byte {
	s := p.states.Get().(*macState)
	defer p.states.Put(s)
	s.hash.Reset()
	s.in = append(s.in[:0], key...)
	s.hash.Write(s.in) // never returns an error, by contract of hash.Hash
	clear(s.in)
	return base64.RawURLEncoding.AppendEncode(dst, s.hash.Sum(s.sum[:0])[:macBytes])
}
