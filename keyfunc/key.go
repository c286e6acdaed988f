package keyfunc

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// The errors of a request. Package ratelimit has the statuses.
var (
	ErrMissing    = errors.New("missing")     // the request lacks the identity
	ErrMalformed  = errors.New("malformed")   // a value is malformed or ambiguous
	ErrUnknown    = errors.New("unknown")     // the lookup does not know the identity
	ErrNotCounted = errors.New("not counted") // an Optional lacks its identity: the policy does not apply
)

var errZero = errors.New("keyfunc: the zero Key counts no client; make a Key with IP, User, APIKey or another constructor")

// A Key is immutable, comparable and safe for concurrent use. The zero Key is a misconfiguration, except in a Policy
// of package ratelimit, where it means the client's address.
type Key struct{ def *definition }

// A definition is everything known of a Key. It never changes.
type definition struct {
	append   appendFunc
	info     keyaccess.Info
	err      error       // all misconfigurations
	route    bool        // the key may begin with a route
	optional bool        // a part is Optional
	ip       *ipPolicy   // of IP and Peer
	ips      []*ipPolicy // of all parts
}

// An appendFunc appends a key, or part of one, and returns its tier. Callers
// ignore the other results of an error.
type appendFunc func(dst []byte, q *Request) (key []byte, tier string, err error)

// newKey returns the Key of f. A misconfigured Key fails on every request, so
// that it counts no client even if no caller inspects it.
func newKey(f appendFunc, info keyaccess.Info, misconfigurations ...error) Key {
	err := errors.Join(misconfigurations...)
	if err != nil {
		f = func([]byte, *Request) ([]byte, string, error) { return nil, "", err }
	}
	if info.Forms == nil {
		info.Forms = [][]string{info.Kinds}
	}
	return Key{&definition{append: f, info: info, err: err}}
}

// Inspect returns an error with one line per misconfiguration of k and its parts; the zero Key is one. The Info is
// for this module.
func (k Key) Inspect() (keyaccess.Info, error) {
	if k.def == nil {
		return keyaccess.Info{}, errZero
	}
	return k.def.info, k.def.err
}

// Append appends the key of q to dst, and returns the tier of its Identity. On an error it returns dst; the bytes
// behind its length may have changed. A misconfigured Key always fails.
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

// requestError makes an error of requests once, with its Key: an error must not
// cost the server more than the request costs its sender. The subject and the
// detail come from the configuration.
func requestError(subject string, sentinel error, detail string) error {
	if detail != "" {
		sentinel = fmt.Errorf("%w: %s", sentinel, detail)
	}
	return &clientError{subject, sentinel}
}

// A clientError is an error that the client caused. It composes its text when it is
// read, because few callers read it.
type clientError struct {
	subject string
	err     error
}

func (e *clientError) Error() string { return "keyfunc: " + e.subject + ": " + e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

// ForClient says what is wrong, in a sentence that the client may read. It needs no
// escape in JSON.
func (e *clientError) ForClient() string { return e.subject + " is " + e.err.Error() + "." }

func misconfigurationf(format string, args ...any) error {
	return fmt.Errorf("keyfunc: "+format, args...)
}
