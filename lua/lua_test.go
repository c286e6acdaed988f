// The script: its parts, its digest, and the commands that it needs.

package lua_test

import (
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/lua"
)

func TestDigestIsUpToDate(t *testing.T) {
	sum := sha1.Sum([]byte(lua.Source()))
	if want := hex.EncodeToString(sum[:]); lua.Digest != want {
		t.Errorf("Digest is %q, the script's is %q: run go generate ./lua", lua.Digest, want)
	}
}

// Every file is part of the script, without being listed.
func TestSourceHoldsEveryFileOnce(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %q, error %v", files, err)
	}
	for _, name := range files {
		part, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(lua.Source(), string(part)); n != 1 {
			t.Errorf("got %s %d times in the script, want once", name, n)
		}
	}
}

// An operator grants the commands that the package's documentation lists.
func TestDocumentationListsTheCommands(t *testing.T) {
	source, err := os.ReadFile("lua.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(source), "\npackage lua")
	called := make(map[string]bool)
	for _, match := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(lua.Source(), -1) {
		called[match[1]] = true
	}
	listed := make(map[string]bool)
	_, doc, _ = strings.Cut(doc, "commands")
	doc, _, _ = strings.Cut(doc, "An operator")
	for _, command := range regexp.MustCompile(`[A-Z]{3,}`).FindAllString(doc, -1) {
		listed[command] = true
		if !called[command] {
			t.Errorf("%s is listed, and the script does not call it", command)
		}
	}
	for command := range called {
		if !listed[command] {
			t.Errorf("%s is called, and not listed", command)
		}
	}
}
