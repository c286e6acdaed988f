package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/draw"
)

var errBroken = errors.New("database is down")

func failing(err error) Key {
	return Custom("c", func(*http.Request) (string, error) { return "value", err })
}

func TestErrorsOfKeys(t *testing.T) {
	none := User(userOf(Identity{}, false))
	empty := Custom("tenant", func(*http.Request) (string, error) { return "", nil })
	wrapped := fmt.Errorf("session expired: %w", ErrUnknown)
	both := errors.Join(ErrMissing, ErrMalformed)
	for _, tt := range []struct {
		name string
		key  Key
		want error
		text string
	}{
		{"header missing", Header("X-None"), ErrMissing, "keyfunc: X-None: missing"},
		{"header empty", Header("X-Empty"), ErrMissing, "keyfunc: X-Empty: missing"},
		{"header twice", Header("X-Twice"), ErrMalformed, "keyfunc: X-Twice: malformed: several field lines"},
		{"header too long", Header("X-Long"), ErrMalformed, "keyfunc: X-Long: malformed: longer than 1024 bytes"},
		{"no user", none, ErrMissing, "keyfunc: User: missing"},
		{"custom empty", empty, both, "keyfunc: tenant: missing"},
		{"custom missing", failing(ErrMissing), both, "keyfunc: c: missing"},
		{"custom malformed", failing(ErrMalformed), ErrMalformed, "keyfunc: c: malformed"},
		{"custom unknown", failing(wrapped), ErrUnknown, "keyfunc: c: session expired: unknown"},
		{"custom broken", failing(errBroken), errBroken, "database is down"},
		{"join passes missing", Join(Const("a"), none), ErrMissing, "keyfunc: User: missing"},
		{"join passes malformed", Join(Header("X-Twice"), none), ErrMalformed, ""},
		{"join passes unknown", Join(Const("a"), failing(ErrUnknown)), ErrUnknown, ""},
		{"join passes broken", Join(Const("a"), failing(errBroken)), errBroken, ""},
		{"nothing left", FirstOf(none, Header("X-None")), ErrMissing, "keyfunc: FirstOf: missing: none of its keys is in the request"},
		{"nothing left of values", FirstOf(empty, failing(ErrMissing)), both, "keyfunc: FirstOf: missing: none of its keys is in the request"},
		{"nothing left of both", FirstOf(empty, none), ErrMissing, "keyfunc: FirstOf: missing: none of its keys is in the request"},
		{"malformed stops", FirstOf(none, Header("X-Twice"), Const("a")), ErrMalformed, ""},
		{"unknown stops", FirstOf(failing(ErrUnknown), Const("a")), ErrUnknown, ""},
		{"broken stops", FirstOf(failing(errBroken), Const("a")), errBroken, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := request("X-Empty", "", "X-Twice", "a", "X-Twice", "a", "X-Long", strings.Repeat("a", 1025))
			s, err := tt.key.Of(r)
			if s != "" || err == nil {
				t.Fatalf("got %q, %v, want an error", s, err)
			}
			for _, one := range []error{ErrMissing, ErrMalformed, ErrUnknown, errBroken} {
				if want := errors.Is(tt.want, one); errors.Is(err, one) != want {
					t.Errorf("got %v, want it to wrap %q: %v", err, one, want)
				}
			}
			if tt.text != "" && err.Error() != tt.text {
				t.Errorf("got text %q, want %q", err, tt.text)
			}
		})
	}
}

func TestFirstOfGoesOnPastMissing(t *testing.T) {
	k := FirstOf(Join(Header("X-A"), Header("X-B")), Header("X-A"), IP(nil))
	for _, tt := range []struct {
		fields []string
		want   string
	}{
		{[]string{"X-A", "1", "X-B", "2"}, "hdr.x-a=1|hdr.x-b=2"},
		{[]string{"X-A", "1"}, "hdr.x-a=1"},
		{[]string{"X-B", "2"}, "ip=192.0.2.1"},
	} {
		if got, err := k.Of(request(tt.fields...)); err != nil || got != tt.want {
			t.Errorf("got %q, %v for %q, want %q", got, err, tt.fields, tt.want)
		}
	}
}

func TestTheCallersSliceIsCopied(t *testing.T) {
	keys := []Key{Const("a"), Const("b")}
	join, first := Join(keys...), FirstOf(keys...)
	keys[0] = Key{}
	if got, err := join.Of(request()); err != nil || got != "const=a|const=b" {
		t.Errorf("got %q, %v, want %q", got, err, "const=a|const=b")
	}
	if got, err := first.Of(request()); err != nil || got != "const=a" {
		t.Errorf("got %q, %v, want %q", got, err, "const=a")
	}
}

func TestLongestHeader(t *testing.T) {
	value := strings.Repeat("|", maxHeader)
	got, err := Header("X-Long").Of(request("X-Long", value))
	if want := "hdr.x-long=" + strings.Repeat("%7C", maxHeader); err != nil || got != want {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
}

// Text writes what the Keys write, whatever the value.
func TestText(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		value := v.Text("aZ09-._~ %|=+{}\"\\\x00\t\n\x7fé世🙂", 1, 50)
		login := Custom("login", func(*http.Request) (string, error) { return value, nil })
		user := User(userOf(Identity{ID: value}, true))
		got, _, err := Join(login, user).Append(nil, &Request{Request: request("X-Tenant", value)})
		if want := Text("login", value) + "|" + Text("usr", value); err != nil || string(got) != want {
			t.Fatalf("got %q, error %v, want %q", got, err, want)
		}
	})
}
