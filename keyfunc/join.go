package keyfunc

import (
	"errors"
	"net/http"
	"slices"
)

// Join returns the Key of several parts together, such as each client on each
// route. An error of a part is an error of the whole. The keys must not be
// none.
//
// The first part is the one whom the limits are for: in a Redis Cluster all
// counters of one first part live together on one shard. So a Join must not
// begin with a route, directly or within a nested Join or FirstOf: all clients
// of a busy route would burden the same shard.
func Join(keys ...Key) Key {
	keys = slices.Clone(keys)
	mistakes := partMistakes("Join", keys)
	if len(keys) > 0 && keys[0].route {
		mistakes = append(mistakes, mistakef("Join must not begin with a route: "+
			"the first part places a key in a Redis Cluster; put the client first"))
	}
	joined := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, '|')
			}
			var err error
			if dst, err = k.append(dst, r); err != nil {
				return nil, err
			}
		}
		return dst, nil
	}, mistakes...)
	joined.challenges = partChallenges(keys)
	joined.peer = slices.ContainsFunc(keys, Key.ByPeer)
	return joined
}

// FirstOf returns the first of the keys that the request has. [ErrMissing]
// lets it go on to the next, any other error ends it: bad credentials must not
// make somebody else of a client. If nothing is left, that is ErrMissing. The
// keys must not be none.
//
// A client chooses among the keys by what it leaves out, so each of them needs
// a limit it may have in addition to the others.
func FirstOf(keys ...Key) Key {
	keys = slices.Clone(keys)
	missing := requestError("FirstOf", ErrMissing, "none of its keys is in the request")
	k := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		for _, k := range keys {
			out, err := k.append(dst, r)
			if err == nil {
				return out, nil
			}
			if !errors.Is(err, ErrMissing) {
				return nil, err
			}
		}
		return nil, missing
	}, partMistakes("FirstOf", keys)...)
	k.challenges = partChallenges(keys)
	k.peer = slices.ContainsFunc(keys, Key.ByPeer)
	k.route = slices.ContainsFunc(keys, func(k Key) bool { return k.route })
	return k
}

// partMistakes returns the mistakes of the parts, and that there are none.
func partMistakes(name string, keys []Key) []error {
	if len(keys) == 0 {
		return []error{mistakef("%s of no keys", name)}
	}
	var mistakes []error
	for i, k := range keys {
		if k.IsZero() {
			mistakes = append(mistakes, mistakef("%s: key %d of %d is the zero Key", name, i+1, len(keys)))
			continue
		}
		mistakes = append(mistakes, k.mistake)
	}
	return mistakes
}
