package keyfunc

import (
	"errors"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// Const returns the Key const=<name>: all clients share one limit.
func Const(name string) Key {
	text := appendEscaped([]byte("const="), name)
	info := keyaccess.Info{Kinds: []string{keyaccess.Const}, Forms: [][]string{{string(text)}}}
	if name == "" {
		return newKey(nil, info, misconfigurationf("Const: the name is empty"))
	}
	return newKey(func(dst []byte, _ *Request) ([]byte, string, error) {
		return append(dst, text...), "", nil
	}, info)
}

// Custom returns the Key <kind>=<value> with the value that f returns. The kind is a lower-case letter and up to 31
// lower-case letters, digits or '-', except ip, usr, rt, const and hdr.
//
// An empty value, or an error of f that wraps ErrMissing, is both ErrMissing and ErrMalformed. Errors that wrap
// ErrMalformed or [ErrUnknown] keep their meaning. For credentials use [User] or [APIKey].
func Custom(kind string, f func(*http.Request) (string, error)) Key {
	var misconfigurations []error
	switch {
	case !isKind(kind):
		misconfigurations = append(misconfigurations, misconfigurationf("Custom: kind %q is not a lower-case letter "+
			"and up to 31 lower-case letters, digits or '-'", kind))
	case slices.Contains(keyaccess.Kinds, kind):
		misconfigurations = append(misconfigurations, misconfigurationf("Custom: kind %q is reserved; choose another", kind))
	}
	if f == nil {
		misconfigurations = append(misconfigurations, misconfigurationf("Custom: the function of kind %q is nil", kind))
	}
	prefix := kind + "="
	missing := &customError{clientError{kind, ErrMissing}}
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		value, err := f(q.Request)
		switch {
		case errors.Is(err, ErrMissing), errors.Is(err, ErrMalformed), errors.Is(err, ErrUnknown):
			return nil, "", &customError{clientError{kind, err}}
		case err != nil:
			return nil, "", err
		case value == "":
			return nil, "", missing
		}
		return appendEscaped(append(dst, prefix...), value), "", nil
	}, keyaccess.Info{Kinds: []string{kind}, Unknown: true}, misconfigurations...)
}

func isKind(s string) bool {
	return len(s) <= 32 && consistsOf(s, lowerCase+digits+"-") && consistsOf(s[:1], lowerCase)
}

// A customError is a clientError of a Custom. A missing value is also malformed.
type customError struct{ clientError }

// ForClient says what is wrong, without the text of the service's error.
func (e *customError) ForClient() string {
	shown := clientError{e.subject, ErrMalformed}
	if errors.Is(e.err, ErrMissing) {
		shown.err = ErrMissing
	}
	return shown.ForClient()
}

func (e *customError) Is(target error) bool {
	return target == ErrMalformed && errors.Is(e.err, ErrMissing)
}
