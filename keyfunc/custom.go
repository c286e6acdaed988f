package keyfunc

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// User returns the Key usr=<id> of the user whom earlier middleware has
// verified and put into the context of the request. The empty string means
// that there is none, and is [ErrMissing]. A nil f is a mistake.
func User(f func(context.Context) string) Key {
	if f == nil {
		return newKey(nil, mistakef("User: the function is nil"))
	}
	missing := requestError("User", ErrMissing, "")
	return newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		id := f(r.Context())
		if id == "" {
			return nil, missing
		}
		return appendEscaped(append(dst, "usr="...), id), nil
	})
}

// Const returns the Key const=<name>, which is the same for all requests:
// everybody shares one limit. An empty name is a mistake.
func Const(name string) Key {
	if name == "" {
		return newKey(nil, mistakef("Const: the name is empty"))
	}
	text := appendEscaped([]byte("const="), name)
	return newKey(func(dst []byte, _ *http.Request) ([]byte, error) {
		return append(dst, text...), nil
	})
}

// reservedKinds are the kinds of this package's own keys.
var reservedKinds = []string{"ip", "key", "usr", "rt", "const", "hdr"}

// Custom returns the Key <kind>=<value> with the value that f returns. The
// kind is a lower-case letter and up to 31 lower-case letters, digits or '-',
// and none of this package's own: ip, key, usr, rt, const, hdr.
//
// An empty value is [ErrMissing]. An error of f that wraps ErrMissing,
// [ErrMalformed] or [ErrUnknown] is wrapped, and means what it says. Any other
// is passed on as it is: it is the server's failure, not the client's. A nil f
// is a mistake. f must not read the body, unless it restores it, and must be
// safe for concurrent use.
func Custom(kind string, f func(*http.Request) (string, error)) Key {
	var mistakes []error
	switch {
	case !isKind(kind):
		mistakes = append(mistakes, mistakef("Custom: kind %q is not a lower-case letter "+
			"and up to 31 lower-case letters, digits or '-'", kind))
	case slices.Contains(reservedKinds, kind):
		mistakes = append(mistakes, mistakef("Custom: kind %q is one of keyfunc's own", kind))
	}
	if f == nil {
		mistakes = append(mistakes, mistakef("Custom: the function of kind %q is nil", kind))
	}
	prefix := kind + "="
	missing := requestError(kind, ErrMissing, "")
	return newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		value, err := f(r)
		switch {
		case err != nil:
			return nil, wrapCustom(kind, err)
		case value == "":
			return nil, missing
		}
		return appendEscaped(append(dst, prefix...), value), nil
	}, mistakes...)
}

func isKind(s string) bool {
	if len(s) == 0 || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func wrapCustom(kind string, err error) error {
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrMalformed) || errors.Is(err, ErrUnknown) {
		return &customError{kind, err}
	}
	return err
}

// A customError is composed when it is read, which for most never happens.
type customError struct {
	kind string
	err  error
}

func (e *customError) Error() string { return "keyfunc: " + e.kind + ": " + e.err.Error() }
func (e *customError) Unwrap() error { return e.err }
