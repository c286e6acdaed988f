package tests

import (
	"net/http"
	"testing"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestOptional: a visitor without an identity is counted by the other policies alone, and is not asked for a key. One with a
// bad key is.
func TestOptional(t *testing.T) {
	account := ratelimit.Policy{Name: "account", Key: keyfunc.Optional(apiKey), Limit: hourly}
	seen := new(verdicts)
	for _, beside := range [][]ratelimit.Policy{nil, {byIP("address", hourly)}} {
		h := newMiddleware(t, newStill(t), nil, append(beside, account)...).Handler(seen)
		for _, tt := range []struct {
			keys     []string
			status   int
			policies int // besides the address's
		}{
			{nil, http.StatusOK, 0}, {[]string{"good-key"}, http.StatusOK, 1}, {[]string{"a b"}, http.StatusBadRequest, 0}, {[]string{"guess"}, http.StatusUnauthorized, 0},
		} {
			seen.got = nil
			if w := record(h, withKeys(tt.keys...)); w.Code != tt.status {
				t.Errorf("%q: got status %d, want %d", tt.keys, w.Code, tt.status)
			}
			if tt.status == http.StatusOK && len(seen.got[0].Policies) != len(beside)+tt.policies {
				t.Errorf("%q: got %+v, want %d policies", tt.keys, seen.got[0].Policies, len(beside)+tt.policies)
			}
		}
	}
}
