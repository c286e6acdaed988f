package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// The errors of a request that the client causes. They contain no value that
// the client has sent. The package comment lists the answers to them.
var (
	// ErrMissing says that the request does not carry the identity.
	ErrMissing = errors.New("missing")

	// ErrMalformed says that the request carries a malformed or ambiguous
	// value in place of the identity.
	ErrMalformed = errors.New("malformed")

	// ErrUnknown says that the identity is well-formed, and that the lookup
	// does not know it.
	ErrUnknown = errors.New("unknown")
)

var errZero = errors.New("keyfunc: the zero Key counts no client; make a Key with IP, User, APIKey or another constructor")

// A Key says who is counted: it turns a request into the key of a limiter.
//
// The zero Key means that none was chosen. Package ratelimit takes the client's
// address for the zero Key of a policy. For the functions of this package it is
// a misconfiguration. A Key is immutable, comparable and safe for concurrent
// use. Two calls of a constructor return different Keys.
type Key struct{ def *definition }

// A definition is everything known of a Key. It never changes.
type definition struct {
	append appendFunc
	info   Info
	err    error     // all misconfigurations
	route  bool      // the key may begin with a route
	ip     *ipPolicy // of IP and Peer
}

// An appendFunc appends a key, or part of one, and returns its tier. Callers
// ignore the other results of an error.
type appendFunc func(dst []byte, q *Request) (key []byte, tier string, err error)

// newKey returns the Key of f. A misconfigured Key fails on every request, so
// that it counts no client even if no caller inspects it.
func newKey(f appendFunc, info Info, misconfigurations ...error) Key {
	if len(info.Forms) == 0 { // neither a Join nor a FirstOf
		info.Forms = [][]string{info.Kinds}
	}
	err := errors.Join(misconfigurations...)
	if err != nil {
		f = func([]byte, *Request) ([]byte, string, error) { return nil, "", err }
	}
	return Key{&definition{append: f, info: info, err: err}}
}

// Info describes a Key. [Key.Inspect] returns it. The zero Info describes the
// zero Key. The caller owns the slices.
type Info struct {
	// Kinds are the kinds of all parts that a text of the Key may have, each
	// once: "usr", "ip", "rt", "const", "hdr.x-tenant" for Header("X-Tenant"),
	// and the kinds of Custom. A text with a part of another kind is not a text
	// of this Key.
	Kinds []string

	// Forms are the parts of the texts of the Key, in their order: the kind of
	// each part, or the whole part of a Const. A FirstOf has the forms of all its
	// keys. A text that has none of the forms is not a text of this Key.
	Forms [][]string

	// Challenges are values for the WWW-Authenticate of a 401 (RFC 9110,
	// section 11.6.1), one for each API key that the Key reads: "Bearer", or an
	// unregistered scheme such as APIKey header="X-Api-Key". Keys that verify
	// no identity have none.
	Challenges []string

	// Identity reports whether the Key may yield an Identity: it is an APIKey
	// or User, or a FirstOf or Join with such a part.
	Identity bool

	// Address reports whether the Key is itself an IP or Peer, as
	// Request.ClientIP requires.
	Address bool

	// ByClientIP reports whether the Key is an IP without proxy settings, or
	// has such a part. That IP takes the address that Request.ClientIP finds.
	ByClientIP bool
}

// Inspect returns a description of k, and every misconfiguration of k and of
// its parts, one line each. The error of the zero Key says that it is zero.
func (k Key) Inspect() (Info, error) {
	if k.def == nil {
		return Info{}, errZero
	}
	info := k.def.info
	info.Kinds, info.Challenges = slices.Clone(info.Kinds), slices.Clone(info.Challenges)
	info.Forms = slices.Clone(info.Forms)
	for i, form := range info.Forms {
		info.Forms[i] = slices.Clone(form)
	}
	return info, k.def.err
}

// Append appends the key of q to dst, and returns the tier of the Identity in
// it. The tier is empty for keys without an Identity. On an error it returns
// dst as it was; the bytes between its length and its capacity may have changed.
//
// The package comment lists the errors of requests. A misconfigured Key returns
// the error of [Key.Inspect] for every request.
func (k Key) Append(dst []byte, q *Request) (key []byte, tier string, err error) {
	if k.def == nil {
		return dst, "", errZero
	}
	key, tier, err = k.def.append(dst, q)
	if err != nil {
		return dst, "", err
	}
	return key, tier, nil
}

// requests serves Of, whose Requests escape to the heap.
var requests = sync.Pool{New: func() any { return new(Request) }}

// Of returns the key of r as a string, for logs and tests. It takes the peer of
// the connection for Request.ClientIP, and remembers no identities. Its errors
// are those of [Key.Append].
func (k Key) Of(r *http.Request) (string, error) {
	q := requests.Get().(*Request)
	q.Request = r
	key, _, err := k.Append(make([]byte, 0, 64), q)
	*q = Request{}
	requests.Put(q)
	return string(key), err
}

// requestError declares an error of requests when a Key is made: an error must
// not cost the server more than the request costs its sender.
func requestError(subject string, sentinel error, detail string) error {
	if detail == "" {
		return fmt.Errorf("keyfunc: %s: %w", subject, sentinel)
	}
	return fmt.Errorf("keyfunc: %s: %w: %s", subject, sentinel, detail)
}

// misconfigurationf declares one misconfiguration of a Key.
func misconfigurationf(format string, args ...any) error {
	return fmt.Errorf("keyfunc: "+format, args...)
}
