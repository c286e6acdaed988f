package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// The errors of a request, which every error of [Key.Append] wraps that is
// the client's doing. None of them contains the value the client has sent.
var (
	// ErrMissing says that the request does not carry the identity.
	ErrMissing = errors.New("missing")

	// ErrMalformed says that the request carries something in its place that
	// is not well-formed, or that is ambiguous.
	ErrMalformed = errors.New("malformed")

	// ErrUnknown says that the identity is well-formed, but not verified.
	ErrUnknown = errors.New("unknown")
)

var errZero = errors.New("keyfunc: the zero Key was used; make keys with IP, APIKey, User and the others")

// A Key says who is counted: it turns a request into the key of a limiter.
// It is immutable and safe for concurrent use. The zero Key is a mistake,
// which [Key.Validate] reports.
type Key struct {
	append     appendFunc // nil in the zero Key only
	mistake    error      // everything that is wrong with the configuration
	route      bool       // the key begins with a route, or may
	peer       bool       // a part is an IP without trusted proxies, or may be
	challenges []string   // how to send the identities that it verifies itself
}

// An appendFunc appends a key, or part of one. What it returns along with an
// error is ignored.
type appendFunc func(dst []byte, r *http.Request) ([]byte, error)

// newKey returns the Key of f, or one that fails if there are mistakes: a
// misconfigured Key must not count anybody, even if nobody validates it.
func newKey(f appendFunc, mistakes ...error) Key {
	err := errors.Join(mistakes...)
	if err != nil {
		f = func([]byte, *http.Request) ([]byte, error) { return nil, err }
	}
	return Key{append: f, mistake: err}
}

// IsZero reports whether k is the zero Key, which no function of this package
// returns.
func (k Key) IsZero() bool { return k.append == nil }

// Validate returns every mistake in the configuration of k and of its parts,
// one line each, or nil.
func (k Key) Validate() error {
	if k.IsZero() {
		return errZero
	}
	return k.mistake
}

// Challenges returns what the WWW-Authenticate of a 401 should say (RFC 9110,
// section 11.6.1): a challenge for each API key that k reads, "Bearer" or, for
// lack of a registered scheme, such as APIKey header="X-Api-Key". It is empty
// for keys that verify nothing themselves.
func (k Key) Challenges() []string { return slices.Clone(k.challenges) }

// ByPeer reports whether k counts by the peer of the connection, or may: it is an
// [IP] that trusts no proxies, or has one among its parts.
func (k Key) ByPeer() bool { return k.peer }

// partChallenges returns the challenges of keys, each once.
func partChallenges(keys []Key) []string {
	var all []string
	for _, k := range keys {
		for _, c := range k.challenges {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Append appends the key of r to dst. On an error it returns dst as it was;
// the bytes between its length and its capacity may have changed.
//
// An error wraps [ErrMissing], [ErrMalformed] or [ErrUnknown], unless it is
// that of a function given to [Custom], or a mistake of [Key.Validate].
func (k Key) Append(dst []byte, r *http.Request) ([]byte, error) {
	if k.IsZero() {
		return dst, errZero
	}
	out, err := k.append(dst, r)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Of returns the key of r as a string; see [Key.Append] for its errors.
func (k Key) Of(r *http.Request) (string, error) {
	b, err := k.Append(make([]byte, 0, 64), r)
	return string(b), err
}

// requestError declares an error of requests, when a Key is made: an error
// must not cost the server more than the request costs its sender.
func requestError(subject string, sentinel error, detail string) error {
	if detail == "" {
		return fmt.Errorf("keyfunc: %s: %w", subject, sentinel)
	}
	return fmt.Errorf("keyfunc: %s: %w: %s", subject, sentinel, detail)
}

// mistakef declares a mistake of configuration.
func mistakef(format string, args ...any) error {
	return fmt.Errorf("keyfunc: "+format, args...)
}
