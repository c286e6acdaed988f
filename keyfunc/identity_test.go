package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// unavailable reports whether a chain of errors says that a lookup failed.
func unavailable(err error) bool {
	var u interface{ Unavailable() bool }
	return errors.As(err, &u) && u.Unavailable()
}

var sentinels = []error{ErrMissing, ErrMalformed, ErrUnknown}

func TestErrorsOfLookups(t *testing.T) {
	const secret = "sk_live_1"
	empty := "keyfunc: X-Api-Key: lookup returned an empty ID and no error; return ErrUnknown for unknown keys"
	for _, tt := range []struct {
		name        string
		id          Identity
		err         error
		wraps       error // of the sentinels and tt.err
		unavailable bool
		text        string
	}{
		{"unknown", Identity{}, ErrUnknown, ErrUnknown, false, "keyfunc: X-Api-Key: unknown"},
		{"unknown, with an ID", Identity{ID: "42"}, ErrUnknown, ErrUnknown, false, "keyfunc: X-Api-Key: unknown"},
		{"unknown, with the key", Identity{}, fmt.Errorf("%s: %w", secret, ErrUnknown), ErrUnknown, false, "keyfunc: X-Api-Key: unknown"},
		{"empty ID", Identity{Tier: "gold"}, nil, nil, false, empty},
		{"broken", Identity{ID: "42"}, errBroken, errBroken, true, "keyfunc: X-Api-Key: lookup: database is down"},
		{"canceled", Identity{}, context.Canceled, context.Canceled, true, ""},
		{"too late", Identity{}, fmt.Errorf("query: %w", context.DeadlineExceeded), context.DeadlineExceeded, true, ""},
		{"missing", Identity{}, ErrMissing, nil, true, "keyfunc: X-Api-Key: lookup: missing"},
		{"malformed", Identity{}, fmt.Errorf("row: %w", ErrMalformed), nil, true, "keyfunc: X-Api-Key: lookup: row: malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := APIKey("X-API-Key", func(context.Context, string) (Identity, error) { return tt.id, tt.err })
			// A lookup's error must end a FirstOf, whichever it is.
			for _, k := range []Key{k, FirstOf(k, Const("a")), Join(k, Const("a"))} {
				s, err := k.Of(request("X-API-Key", secret))
				if s != "" || err == nil || tt.wraps != nil && !errors.Is(err, tt.wraps) {
					t.Fatalf("got %q, %v, want an error that wraps %v", s, err, tt.wraps)
				}
				for _, other := range sentinels {
					if other != tt.wraps && errors.Is(err, other) {
						t.Errorf("got %v, want it not to wrap %q", err, other)
					}
				}
				if unavailable(err) != tt.unavailable {
					t.Errorf("got Unavailable %v of %v, want %v", !tt.unavailable, err, tt.unavailable)
				}
				if strings.Contains(err.Error(), secret) || tt.text != "" && err.Error() != tt.text {
					t.Errorf("got text %q, want %q", err, tt.text)
				}
			}
		})
	}
}

func TestErrorsOfUsers(t *testing.T) {
	none, empty := User(userOf(Identity{"1", "a"}, false)), User(userOf(Identity{Tier: "gold"}, true))
	if s, err := none.Of(request()); s != "" || !errors.Is(err, ErrMissing) || err.Error() != "keyfunc: User: missing" {
		t.Errorf("got %q, %v, want ErrMissing", s, err)
	}
	s, err := FirstOf(empty, Const("a")).Of(request())
	if s != "" || err == nil || unavailable(err) {
		t.Fatalf("got %q, %v, want an error of the program", s, err)
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			t.Errorf("got %v, want it not to wrap %q", err, sentinel)
		}
	}
}

func TestTiers(t *testing.T) {
	gold, none := User(userOf(Identity{"1", "gold"}, true)), User(userOf(Identity{}, false))
	silver := APIKey("X-API-Key", accounts("sk", Identity{"2", "silver"}))
	plain := User(userOf(Identity{ID: "3"}, true))
	for _, tt := range []struct {
		name      string
		key       Key
		text, its string
	}{
		{"user", gold, "usr=1", "gold"},
		{"API key", silver, "usr=2", "silver"},
		{"without a plan", plain, "usr=3", ""},
		{"no identity", IP(nil), "ip=192.0.2.1", ""},
		{"first of", FirstOf(none, silver, gold), "usr=2", "silver"},
		{"first of, the other", FirstOf(gold, silver), "usr=1", "gold"},
		{"first of, without an identity", FirstOf(none, Const("a")), "const=a", ""},
		{"join, first", Join(gold, Const("a")), "usr=1|const=a", "gold"},
		{"join, last", Join(Const("a"), IP(nil), silver), "const=a|ip=192.0.2.1|usr=2", "silver"},
		{"deep", Join(Const("a"), FirstOf(none, Join(silver, Const("b"))), Const("c")), "const=a|usr=2|const=b|const=c", "silver"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, tier, err := tt.key.Append(nil, &Request{Request: request("X-API-Key", "sk")})
			if err != nil || string(text) != tt.text || tier != tt.its {
				t.Errorf("got %q, tier %q, %v, want %q, tier %q", text, tier, err, tt.text, tt.its)
			}
		})
	}
}

// counting returns an APIKey and a User that note their calls.
func counting(calls *[]string, err error) (apiKey, user Key) {
	apiKey = APIKey("X-API-Key", func(_ context.Context, key string) (Identity, error) {
		*calls = append(*calls, key)
		return Identity{key, "gold"}, err
	})
	user = User(func(context.Context) (Identity, bool) {
		*calls = append(*calls, "user")
		return Identity{ID: "u"}, err == nil
	})
	return apiKey, user
}

func TestIdentitiesAreLookedUpOncePerRequest(t *testing.T) {
	for _, failure := range []error{nil, ErrUnknown, errBroken, context.Canceled} {
		t.Run(fmt.Sprint(failure), func(t *testing.T) {
			var calls []string
			apiKey, user := counting(&calls, failure)
			keys := []Key{apiKey, Join(apiKey, Route()), FirstOf(apiKey, IP(nil)), FirstOf(user, IP(nil)), user, Join(user, Const("a"))}
			var texts []string
			for round := range 2 {
				q := &Request{Request: request("X-API-Key", "sk")}
				for i, k := range slices.Concat(keys, keys) {
					text, tier, err := k.Append(nil, q)
					if i < 3 && (tier == "gold") != (failure == nil) || i < 3 && !errors.Is(err, failure) {
						t.Errorf("key %d: got tier %q, %v, want the tier or %v", i, tier, err, failure)
					}
					texts = append(texts, fmt.Sprint(string(text), tier, err))
				}
				if len(calls) != 2*(round+1) {
					t.Fatalf("got calls %q after %d requests, want 2 for each", calls, round+1)
				}
			}
			for i, text := range texts {
				if want := texts[i%len(keys)]; text != want {
					t.Errorf("got %q the second time, want %q", text, want)
				}
			}
		})
	}
}

// Two constructors are two identities, even of the same function.
func TestIdentitiesAreRememberedByConstructor(t *testing.T) {
	var keys []Key
	var calls []string
	for i := range 5 {
		keys = append(keys, APIKey("X-API-Key", func(_ context.Context, key string) (Identity, error) {
			calls = append(calls, key)
			return Identity{ID: fmt.Sprint(i, key)}, nil
		}))
	}
	q := &Request{Request: request("X-API-Key", "a")}
	for _, value := range []string{"a", "b", "a", "b"} {
		q.Header.Set("X-API-Key", value)
		for i, k := range slices.Concat(keys, keys) {
			want := fmt.Sprintf("usr=%d%%20%s", i%5, value)
			if text, _, err := k.Append(nil, q); err != nil || string(text) != want && string(text) != fmt.Sprintf("usr=%d%s", i%5, value) {
				t.Errorf("got %q, %v, want %q", text, err, want)
			}
		}
	}
	if len(calls) != 10 { // five Keys and two values
		t.Errorf("got %d calls, want 10", len(calls))
	}
	*q = Request{Request: q.Request}
	if _, _, _ = keys[0].Append(nil, q); len(calls) != 11 {
		t.Errorf("got %d calls after the Request was overwritten, want 11", len(calls))
	}
}

// A lookup that panics is not remembered as one that has answered.
func TestPanicsAreNotRemembered(t *testing.T) {
	first := true
	k := APIKey("X-API-Key", func(context.Context, string) (Identity, error) {
		if first {
			first = false
			panic("lookup")
		}
		return Identity{ID: "1"}, nil
	})
	q := &Request{Request: request("X-API-Key", "sk")}
	func() {
		defer func() { _ = recover() }()
		_, _, _ = k.Append(nil, q)
	}()
	if text, _, err := k.Append(nil, q); err != nil || string(text) != "usr=1" {
		t.Errorf("got %q, %v, want %q", text, err, "usr=1")
	}
}

// Neither a usual request nor an erroneous one may cost an allocation.
func TestKeysDoNotAllocate(t *testing.T) {
	unknown := APIKey("X-API-Key", func(context.Context, string) (Identity, error) { return Identity{}, ErrUnknown })
	apiKey, user := APIKey("X-API-Key", anyKey), User(userOf(Identity{"1", "gold"}, true))
	none := User(userOf(Identity{}, false))
	custom := Custom("c", func(*http.Request) (string, error) { return "", nil })
	for name, k := range map[string]Key{
		"address": IP(nil), "peer": Peer(), "hops": IP(&IPOptions{Hops: 1}), "API key": apiKey, "user": user,
		"first of": FirstOf(none, apiKey, IP(nil)), "join": Join(apiKey, IP(nil), Const("a")),
		"unknown": unknown, "missing": FirstOf(none, Header("X-None"), custom), "malformed": Header("X-Twice"),
		"empty ID": User(userOf(Identity{}, true)),
	} {
		r := request("X-API-Key", "sk", "X-Forwarded-For", "1.2.3.4", "X-Twice", "a", "X-Twice", "b")
		q, dst := new(Request), make([]byte, 0, 256)
		if allocs := testing.AllocsPerRun(100, func() {
			*q = Request{Request: r}
			_, _, _ = k.Append(dst, q)
		}); allocs != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, allocs)
		}
	}
}

// TestKnownIdentity: an identity that is known already is the key, and no function is called.
func TestKnownIdentity(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]Key{
		"APIKey": APIKey("X-API-Key", func(context.Context, string) (Identity, error) {
			t.Error("the lookup was called")
			return Identity{}, nil
		}),
		"User": User(func(context.Context) (Identity, bool) {
			t.Error("the function was called")
			return Identity{}, false
		}),
	} {
		q := &Request{Request: httptest.NewRequest("GET", "/", nil), known: Identity{ID: "a|b", Tier: "pro"}}
		got, tier, err := key.Append(nil, q)
		if string(got) != "usr=a%7Cb" || tier != "pro" || err != nil {
			t.Errorf("%s: got %q, %q and %v, want the known identity", name, got, tier, err)
		}
	}
}
