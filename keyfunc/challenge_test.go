package keyfunc_test

import (
	"slices"
	"testing"

	"github.com/penstock-go/penstock/keyfunc"
)

func TestChallenges(t *testing.T) {
	secret := []byte("0123456789abcdef")
	known := func(string) bool { return true }
	header := keyfunc.APIKey("X-API-Key", secret, known)
	bearer := keyfunc.APIKey("Authorization", secret, known)
	tests := []struct {
		name string
		key  keyfunc.Key
		want []string
	}{
		{"header", header, []string{`APIKey header="X-Api-Key"`}},
		{"bearer", bearer, []string{"Bearer"}},
		{"address", keyfunc.IP(nil), nil},
		{"either, on each route", keyfunc.Join(keyfunc.FirstOf(header, bearer, header, keyfunc.IP(nil)), keyfunc.Route()), []string{`APIKey header="X-Api-Key"`, "Bearer"}},
	}
	for _, tt := range tests {
		got := tt.key.Challenges()
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if len(got) > 0 {
			got[0] = "changed"
			if slices.Equal(tt.key.Challenges(), got) {
				t.Errorf("%s: a caller can change the key", tt.name)
			}
		}
	}
}
