package keyfunc

import (
	"errors"
	"net/http"
	"slices"
	"testing"
)

// TestOptional: only a missing identity leaves the policy out. The other errors stay.
func TestOptional(t *testing.T) {
	inner := Header("X-Tenant")
	key := Optional(inner)
	if got, err := key.Of(request("X-Tenant", "acme")); err != nil || got != "hdr.x-tenant=acme" {
		t.Errorf("got %q, %v, want the inner key", got, err)
	}
	want, _ := inner.Inspect()
	if got, err := key.Inspect(); err != nil || !slices.Equal(got.Kinds, want.Kinds) || got.Identity != want.Identity {
		t.Errorf("got %+v, %v, want the inner key's %+v", got, err, want)
	}
	none := Custom("x", func(*http.Request) (string, error) { return "", nil })
	for name, k := range map[string]Key{
		"header": key, "user": Optional(User(userOf(Identity{}, false))), "API key": Optional(APIKey("X-Key", anyKey)),
		"custom": Optional(none), "first of": Optional(FirstOf(none, inner)), "join": Join(Const("a"), key), "twice": Optional(key),
	} {
		_, err := k.Of(request("X-None", ""))
		if !errors.Is(err, ErrNotCounted) || errors.Is(err, ErrMissing) || errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want ErrNotCounted only", name, err)
		}
	}
	for _, sentinel := range []error{ErrMalformed, ErrUnknown, errBroken} {
		if _, err := Optional(failing(sentinel)).Of(request("X-None", "")); !errors.Is(err, sentinel) || errors.Is(err, ErrNotCounted) {
			t.Errorf("got %v, want %v", err, sentinel)
		}
	}
}
