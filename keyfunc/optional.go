package keyfunc

import (
	"errors"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// Optional returns key for a policy that counts only the requests that have its identity or value. Where key's error
// is ErrMissing, Optional's is [ErrNotCounted].
//
// A client leaves the policy by omitting its identity, so put a policy beside it that counts all clients, such as one
// by address. Optional cannot stand in a FirstOf. A Join with an Optional part is optional.
func Optional(key Key) Key {
	if key.def == nil {
		return newKey(nil, keyaccess.Info{}, misconfigurationf("Optional: the key is the zero Key"))
	}
	def := *key.def
	notCounted := requestError("Optional", ErrNotCounted, "")
	def.optional, def.append = true, func(dst []byte, q *Request) ([]byte, string, error) {
		dst, tier, err := key.def.append(dst, q)
		if err != nil && errors.Is(err, ErrMissing) {
			err = notCounted
		}
		return dst, tier, err
	}
	return Key{&def}
}
