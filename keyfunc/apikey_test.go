package keyfunc

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func apiKeyText(secret []byte, key string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key))
	return "key=" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
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
			key := APIKey("authorization", testSecret, func(key string) bool { asked = key; return true })
			got, err := key.Of(request("Authorization", tt.value))
			if !errors.Is(err, tt.err) || asked != tt.token {
				t.Fatalf("got %q, %v, asked for %q, want %v and %q", got, err, asked, tt.err, tt.token)
			}
			if want := apiKeyText(testSecret, tt.token); err == nil && got != want {
				t.Errorf("got %q, want %q", got, want)
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
		{"empty", []string{""}, ErrMalformed, "keyfunc: X-Api-Key: malformed: empty, or bytes that do not belong there"},
		{"twice", []string{good, good}, ErrMalformed, "keyfunc: X-Api-Key: malformed: several field lines"},
		{"space", []string{"sk live"}, ErrMalformed, ""},
		{"list", []string{good + ", " + good}, ErrMalformed, ""},
		{"control byte", []string{"sk\x7f"}, ErrMalformed, ""},
		{"not ASCII", []string{"ské"}, ErrMalformed, ""},
		{"longest", []string{strings.Repeat("a", 4096)}, ErrUnknown, ""},
		{"too long", []string{strings.Repeat("a", 4097)}, ErrMalformed, "keyfunc: X-Api-Key: malformed: longer than 4096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := APIKey("X-API-Key", testSecret, func(key string) bool { return key == good })
			r := request()
			r.Header["X-Api-Key"] = tt.values
			got, err := key.Of(r)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %q, %v, want %v", got, err, tt.err)
			}
			if tt.text != "" && err.Error() != tt.text {
				t.Errorf("got text %q, want %q", err, tt.text)
			}
			if want := apiKeyText(testSecret, good); err == nil && got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The text must stay the same from one release to the next, or all counters
// begin afresh. The value is that of openssl dgst -sha256 -hmac.
func TestAPIKeyTextIsStable(t *testing.T) {
	got, err := APIKey("X-API-Key", []byte("0123456789abcdef"), anyKey).Of(request("X-API-Key", "sk_live_1"))
	if want := "key=jFpW08qXEKI6P5a9gAsOvA"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if !regexp.MustCompile(`^key=[A-Za-z0-9_-]{22}$`).MatchString(got) {
		t.Errorf("got %q, want 22 characters of base64url", got)
	}
}

func TestAPIKeyRotation(t *testing.T) {
	old, _ := APIKey("X-API-Key", testSecret, anyKey).Of(request("X-API-Key", "sk"))
	secret := bytes.Repeat([]byte("x"), 16)
	key := APIKey("X-API-Key", secret, anyKey)
	clear(secret) // the Key has its own copy
	rotated, _ := key.Of(request("X-API-Key", "sk"))
	if want := apiKeyText(bytes.Repeat([]byte("x"), 16), "sk"); rotated != want {
		t.Errorf("got %q, want %q", rotated, want)
	}
	if old == rotated {
		t.Errorf("got %q with both secrets, want different keys", old)
	}
}

// apiKeyErrors are all that an error may say, so no value can be in one.
var apiKeyErrors = []string{
	"missing", "unknown", "malformed: several field lines", "malformed: longer than 4096 bytes",
	"malformed: empty, or bytes that do not belong there",
}

// Whatever the value is: the key is its MAC, and the error one of a few texts.
func FuzzAPIKey(f *testing.F) {
	for _, tt := range bearerTests {
		f.Add(tt.value)
		f.Add("Bearer " + tt.value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, known := range []bool{true, false} {
			for _, header := range []string{"Authorization", "X-Api-Key"} {
				var asked string
				key := APIKey(header, testSecret, func(key string) bool { asked = key; return known })
				got, err := key.Of(request(header, value))
				switch {
				case err == nil && (!known || got != apiKeyText(testSecret, asked)):
					t.Errorf("got %q of %q, want the MAC of a known key", got, asked)
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
	key := APIKey("X-API-Key", testSecret, anyKey)
	var wg sync.WaitGroup
	for _, k := range []string{"a", "bb", "ccc", strings.Repeat("d", 200)} {
		wg.Go(func() {
			for range 500 {
				if got, _ := key.Of(request("X-API-Key", k)); got != apiKeyText(testSecret, k) {
					t.Errorf("got %q, want %q", got, apiKeyText(testSecret, k))
					return
				}
			}
		})
	}
	wg.Wait()
}
