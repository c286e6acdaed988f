// What a program compiles that limits in memory.

package layout

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A program that limits in memory compiles neither go-redis nor gobreaker nor Prometheus.
func TestMemoryNeedsNoRedis(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-deps", "./middleware", "./algorithms", "./keyfunc", "./headers")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for dep := range strings.FieldsSeq(string(out)) {
		switch {
		case strings.HasPrefix(dep, module+"/"):
			own++
		case strings.HasPrefix(dep, goRedis), strings.HasPrefix(dep, breaker), strings.HasPrefix(dep, prometheus):
			t.Errorf("compiles %s", dep)
		}
	}
	if own < 4 {
		t.Errorf("got %d packages of this module, want at least the four", own)
	}
}

// A program that calls algorithms alone compiles nothing but the standard library and us.
func TestAlgorithmsNeedTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./algorithms")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.FieldsSeq(string(out)) {
		if !within(imported)(module) {
			t.Errorf("algorithms needs %s", imported)
		}
	}
}
