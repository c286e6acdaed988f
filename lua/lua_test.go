package lua_test

import (
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"testing"

	"github.com/penstock-go/penstock/lua"
)

func TestDigestIsTheScripts(t *testing.T) {
	sum := sha1.Sum([]byte(lua.Source()))
	if want := hex.EncodeToString(sum[:]); lua.Digest != want {
		t.Errorf("Digest is %q, the script's is %q: set it in digest.go", lua.Digest, want)
	}
}
