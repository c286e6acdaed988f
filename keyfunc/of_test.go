package keyfunc

import "net/http"

// Of returns the key of r in tests, with the peer as [Request.ClientIP].
func (k Key) Of(r *http.Request) (string, error) {
	key, _, err := k.Append(nil, &Request{Request: r})
	return string(key), err
}
