package hashed

import "testing"

// TestKey: an operator sees kinds, routes and constants, and no identity. The hashes are those of sha256sum.
func TestKey(t *testing.T) {
	for key, want := range map[string]string{
		"ip=192.0.2.1":               "ip=#3f0e2262985212de",
		"usr=42|rt=GET%20/v1/{id}":   "usr=#ff9f47ad7aa2508b|rt=GET%20/v1/{id}",
		"const=all":                  "const=all",
		"*":                          "*",
		"plain":                      "#a116c9ed46d62077",
		"rt=unmatched|ip=2001:db8::": "rt=unmatched|ip=#49de4ebd5e14a32e",
	} {
		if got := Key(key); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}
