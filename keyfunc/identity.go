package keyfunc

import (
	"context"
	"errors"
	"net/http"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// Identity is an account and its plan. The zero Identity is no account. A limiter counts the ID, however many keys
// the account has. Policies with the same Key look an identity up once per [Request].
type Identity struct {
	ID   string // names the account; an empty one is a programming error
	Tier string // names the plan, which selects limits; "" means none
}

// A Request is an http.Request with the identities that Keys have found in it. For another request or context,
// overwrite it: *q = Request{Request: r}. It is not safe for concurrent use.
type Request struct {
	// Request must not be nil.
	*http.Request

	// ClientIP finds the address for IP Keys without proxy settings. It must be an
	// IP or Peer; the zero Key means Peer.
	ClientIP Key

	guard keyaccess.Guard // nil: none
	known Identity        // of a replayed request; see package keyaccess

	found []finding
	room  [2]finding // of found: otherwise each request would allocate
}

type finding struct {
	by       *identifier
	value    string
	identity Identity
	err      error
}

// An identifier finds the identity of a value. Two identifiers differ by their
// addresses.
type identifier struct {
	find    func(ctx context.Context, value string) (Identity, error)
	unknown error // of values that a keyaccess.Guard does not admit; nil: no guard stands before find
}

// ask finds the identity of a value, if the guard of q admits that.
func (i *identifier) ask(q *Request, value string) (id Identity, err error) {
	if i.unknown == nil || q.guard == nil {
		return i.find(q.Context(), value)
	}
	if !q.guard.Admit(i, value) {
		return Identity{}, i.unknown
	}
	err = errPanic
	defer func() { q.guard.Done(err) }()
	return i.find(q.Context(), value)
}

// errPanic is the result of a lookup that does not return.
var errPanic = errors.New("keyfunc: the lookup did not return")

// append appends the identity of the value to dst. A Request calls the
// identifier once for each value.
func (i *identifier) append(dst []byte, q *Request, value string) ([]byte, string, error) {
	f := q.finding(i, value)
	if f.err != nil {
		return nil, "", f.err
	}
	return f.identity.append(dst)
}

func (i Identity) append(dst []byte) ([]byte, string, error) {
	return appendEscaped(append(dst, "usr="...), i.ID), i.Tier, nil
}

// finding returns the remembered finding, or makes and remembers it.
func (q *Request) finding(by *identifier, value string) *finding {
	for i := range q.found {
		if f := &q.found[i]; f.by == by && f.value == value {
			return f
		}
	}
	identity, err := by.ask(q, value)
	if q.found == nil {
		q.found = q.room[:0]
	}
	q.found = append(q.found, finding{by, value, identity, err})
	return &q.found[len(q.found)-1]
}

// User returns the Key usr=<ID> of the user whom earlier middleware has verified and stored in the context. If f
// returns false, the error is [ErrMissing].
func User(f func(context.Context) (Identity, bool)) Key {
	info := keyaccess.Info{Kinds: []string{keyaccess.User}, Identity: true}
	if f == nil {
		return newKey(nil, info, misconfigurationf("User: the function is nil"))
	}
	missing := requestError("User", ErrMissing, "")
	empty := errors.New("keyfunc: User: the function returned true and an empty ID; return false if there is no user")
	user := &identifier{find: func(ctx context.Context, _ string) (Identity, error) {
		id, ok := f(ctx)
		switch {
		case !ok:
			return Identity{}, missing
		case id.ID == "":
			return Identity{}, empty
		}
		return id, nil
	}}
	return newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		if q.known.ID != "" {
			return q.known.append(dst)
		}
		return user.append(dst, q, "")
	}, info)
}

// newLookup returns the identifier that calls lookup for keys in the named
// header field.
func newLookup(name string, lookup func(context.Context, string) (Identity, error)) *identifier {
	unknown := requestError(name, ErrUnknown, "")
	empty := errors.New("keyfunc: " + name + ": lookup returned an empty ID and no error; return ErrUnknown for unknown keys")
	return &identifier{unknown: unknown, find: func(ctx context.Context, key string) (Identity, error) {
		id, err := lookup(ctx, key)
		switch {
		case err == nil && id.ID == "":
			return Identity{}, empty
		case err == nil:
			return id, nil
		case errors.Is(err, ErrUnknown):
			return Identity{}, unknown // without err, which may contain the key
		}
		return Identity{}, &unavailableError{name, err}
	}}
}

// An unavailableError says that a lookup failed. The client did not cause it.
type unavailableError struct {
	name string
	err  error
}

// Error composes the text when it is read, because few callers read it.
func (e *unavailableError) Error() string { return "keyfunc: " + e.name + ": lookup: " + e.err.Error() }

// Unavailable reports that the service cannot identify the client at present.
func (e *unavailableError) Unavailable() bool { return true }

// Unwrap returns the lookup's error, except one that wraps ErrMissing or
// ErrMalformed: a lookup blames no client, and FirstOf must not go on after it.
func (e *unavailableError) Unwrap() error {
	if errors.Is(e.err, ErrMissing) || errors.Is(e.err, ErrMalformed) {
		return nil
	}
	return e.err
}
