package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// accounts returns a lookup that knows one key.
func accounts(key string, id Identity) func(context.Context, string) (Identity, error) {
	return func(_ context.Context, asked string) (Identity, error) {
		if asked != key {
			return Identity{}, fmt.Errorf("no account has the key %s: %w", asked, ErrUnknown)
		}
		return id, nil
	}
}

// bearerTests feed the table test and the fuzz seeds; an empty token means
// the error.
var bearerTests = []struct {
	name, value, token string
	err                error
}{
	{"token", "Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM", nil},
	{"padded", "Bearer YWJj/+~==", "YWJj/+~==", nil},
	{"any case", "bEARER x", "x", nil},
	{"several spaces", "Bearer   x", "x", nil},
	{"longest", "Bearer " + strings.Repeat("a", 4096), strings.Repeat("a", 4096), nil},
	{"too long", "Bearer " + strings.Repeat("a", 4097), "", ErrMalformed},
	{"empty", "", "", ErrMalformed},
	{"scheme only", "Bearer", "", ErrMalformed},
	{"scheme and spaces", "Bearer  ", "", ErrMalformed},
	{"tab", "Bearer\tx", "", ErrMalformed},
	{"slash for space", "Bearer/x", "", ErrMalformed},
	{"trailing space", "Bearer x ", "", ErrMalformed},
	{"two tokens", "Bearer x y", "", ErrMalformed},
	{"list", "Bearer x,y", "", ErrMalformed},
	{"padding only", "Bearer ==", "", ErrMalformed},
	{"padding inside", "Bearer a=b", "", ErrMalformed},
	{"control byte", "Bearer a\x00", "", ErrMalformed},
	{"not ASCII", "Bearer é", "", ErrMalformed},
	{"no scheme", " x", "", ErrMalformed},
	{"quoted", `"Bearer x"`, "", ErrMalformed},
	{"basic", "Basic dXNlcjpwYXNz", "", ErrMissing},
	{"negotiate, long", "Negotiate " + strings.Repeat("a", 10_000), "", ErrMissing},
	{"digest", `Digest username="x", realm="y"`, "", ErrMissing},
	{"longer scheme", "Bearerx y", "", ErrMissing},
	{"token without scheme", "mF_9.B5f-4.1JqM", "", ErrMissing},
}

func TestBearer(t *testing.T) {
	for _, tt := range bearerTests {
		t.Run(tt.name, func(t *testing.T) {
			var asked string
			key := APIKey("authorization", func(_ context.Context, key string) (Identity, error) {
				asked = key
				return Identity{ID: "42"}, nil
			})
			got, err := key.Of(request("Authorization", tt.value))
			if !errors.Is(err, tt.err) || asked != tt.token {
				t.Fatalf("got %q, %v, asked for %q, want %v and %q", got, err, asked, tt.err, tt.token)
			}
			if err == nil && got != "usr=42" {
				t.Errorf("got %q, want %q", got, "usr=42")
			}
		})
	}
}

func TestAPIKey(t *testing.T) {
	const good = "sk_live_|{}%,=~!"
	for _, tt := range []struct {
		name   string
		values []string
		err    error
		text   string
	}{
		{"known", []string{good}, nil, ""},
		{"missing", nil, ErrMissing, "keyfunc: X-Api-Key: missing"},
		{"unknown", []string{"sk_live_2"}, ErrUnknown, "keyfunc: X-Api-Key: unknown"},
		{"empty", []string{""}, ErrMalformed, "keyfunc: X-Api-Key: malformed: empty, or contains bytes that no key has"},
		{"twice", []string{good, good}, ErrMalformed, "keyfunc: X-Api-Key: malformed: several field lines"},
		{"space", []string{"sk live"}, ErrMalformed, ""},
		{"list", []string{good + ", " + good}, ErrMalformed, ""},
		{"control byte", []string{"sk\x7f"}, ErrMalformed, ""},
		{"not ASCII", []string{"ské"}, ErrMalformed, ""},
		{"longest", []string{strings.Repeat("a", 4096)}, ErrUnknown, ""},
		{"too long", []string{strings.Repeat("a", 4097)}, ErrMalformed, "keyfunc: X-Api-Key: malformed: longer than 4096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := APIKey("X-API-Key", accounts(good, Identity{ID: "4|2"}))
			r := request()
			r.Header["X-Api-Key"] = tt.values
			got, err := key.Of(r)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %q, %v, want %v", got, err, tt.err)
			}
			if tt.text != "" && err.Error() != tt.text {
				t.Errorf("got text %q, want %q", err, tt.text)
			}
			if err == nil && got != "usr=4%7C2" {
				t.Errorf("got %q, want %q", got, "usr=4%7C2")
			}
		})
	}
}

// The account is counted, not the key: each of its keys has the same text.
func TestAPIKeyCountsTheAccount(t *testing.T) {
	key := APIKey("X-API-Key", anyKey)
	for _, value := range []string{"sk_old", "sk_new"} {
		if got, err := key.Of(request("X-API-Key", value)); err != nil || got != "usr=1" {
			t.Errorf("got %q, %v of %q, want %q", got, err, value, "usr=1")
		}
	}
}

func TestAPIKeyPassesTheContext(t *testing.T) {
	key := APIKey("X-API-Key", func(ctx context.Context, _ string) (Identity, error) {
		id, _ := ctx.Value(ctxKey{}).(string)
		return Identity{ID: id}, nil
	})
	r := request("X-API-Key", "sk")
	got, err := key.Of(r.WithContext(context.WithValue(r.Context(), ctxKey{}, "7")))
	if err != nil || got != "usr=7" {
		t.Errorf("got %q, %v, want %q", got, err, "usr=7")
	}
}

// apiKeyErrors are all texts that an error of a client may have, so no value
// can be in one.
var apiKeyErrors = []string{
	"missing", "unknown", "malformed: several field lines", "malformed: longer than 4096 bytes",
	"malformed: empty, or contains bytes that no key has",
}

// For any value the key is the account's, and the error one of a few texts.
func FuzzAPIKey(f *testing.F) {
	for _, tt := range bearerTests {
		f.Add(tt.value)
		f.Add("Bearer " + tt.value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, known := range []bool{true, false} {
			for _, header := range []string{"Authorization", "X-Api-Key"} {
				var asked string
				key := APIKey(header, func(_ context.Context, key string) (Identity, error) {
					asked = key
					if !known {
						return Identity{}, fmt.Errorf("%s is %w", key, ErrUnknown)
					}
					return Identity{ID: "42"}, nil
				})
				got, err := key.Of(request(header, value))
				switch {
				case err == nil && (!known || asked == "" || got != "usr=42"):
					t.Errorf("got %q of %q, want the account of a known key", got, asked)
				case err != nil && !slices.Contains(apiKeyErrors, strings.TrimPrefix(err.Error(), "keyfunc: "+header+": ")):
					t.Errorf("got %v, want one of %q", err, apiKeyErrors)
				}
				if header == "Authorization" && asked != slowBearer(value) {
					t.Errorf("got token %q of %q, want %q", asked, value, slowBearer(value))
				}
			}
		}
	})
}

var bearerSyntax = regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)

func slowBearer(value string) string {
	m := bearerSyntax.FindStringSubmatch(value)
	if m == nil || len(m[1]) > 4096 || strings.ContainsRune(value, '\n') {
		return ""
	}
	return m[1]
}

func TestAPIKeyConcurrently(t *testing.T) {
	key := APIKey("X-API-Key", func(_ context.Context, key string) (Identity, error) { return Identity{ID: key}, nil })
	var wg sync.WaitGroup
	for _, k := range []string{"a", "bb", "ccc", strings.Repeat("d", 200)} {
		wg.Go(func() {
			for range 500 {
				if got, _ := key.Of(request("X-API-Key", k)); got != "usr="+k {
					t.Errorf("got %q, want %q", got, "usr="+k)
					return
				}
			}
		})
	}
	wg.Wait()
}
