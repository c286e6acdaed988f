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
	own := 0
	for _, dep := range listed(t, "-deps", "./middleware", "./algorithms", "./keyfunc", "./headers") {
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

// go mod tidy also reads the tests of the packages that a program compiles. Those of a program that limits in memory need nothing but
// the standard library, us and chi, so no other module stands in its go.sum.
func TestTestsBesideTheCodeNeedNoModule(t *testing.T) {
	t.Parallel()
	compiled := listed(t, "-deps", "./middleware", "./algorithms", "./keyfunc", "./headers")
	for _, dep := range listed(t, append([]string{"-deps", "-test"}, compiled...)...) {
		if !within(dep)(module) && !within(dep)(chi) {
			t.Errorf("tests beside the code need %s: move them below internal/tests of their folder", dep)
		}
	}
}

// listed returns the packages that go list lists and that are not of the standard library.
func listed(t *testing.T, args ...string) (packages []string) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, args...)...)
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // without the test for which it is built
		packages = append(packages, name)
	}
	return packages
}

// A program that calls algorithms alone compiles nothing but the standard library and us.
func TestAlgorithmsNeedTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, imported := range listed(t, "-deps", "./algorithms") {
		if !within(imported)(module) {
			t.Errorf("algorithms needs %s", imported)
		}
	}
}
