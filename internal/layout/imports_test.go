// What a program compiles that limits in memory.

package layout

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
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

// The packages for operators need only the exported names of package ratelimit: they build in another module, which
// cannot import internal packages of this one. The counters of middleware/internal/recent, and the display of keys in
// middleware/internal/hashed, move with them.
func TestOperatorsPackagesNeedExportedNamesOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a module")
	}
	t.Parallel()
	adopter := t.TempDir()
	for _, name := range []string{"console", "statuspage", "overrides", "prommetrics", "replay", "internal/recent", "internal/hashed"} {
		copyPackage(t, filepath.Join("../../middleware", name), filepath.Join(adopter, path.Base(name)))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := strings.Replace(string(read(t, "../../go.mod")), "module "+module, "module adopter.example", 1)
	mod += "\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n"
	write(t, filepath.Join(adopter, "go.mod"), []byte(mod))
	write(t, filepath.Join(adopter, "go.sum"), read(t, "../../go.sum"))
	run(t, adopter, "go", "build", "-mod=mod", "./...")
}

// copyPackage copies a package without its tests, so that it imports the copies of its parts.
func copyPackage(t *testing.T, from, to string) {
	t.Helper()
	files, err := os.ReadDir(from)
	if err == nil {
		err = os.Mkdir(to, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.NewReplacer(module+"/middleware/internal/recent", "adopter.example/recent",
		module+"/middleware/internal/hashed", "adopter.example/hashed", module+"/middleware/overrides", "adopter.example/overrides")
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		write(t, filepath.Join(to, f.Name()), []byte(parts.Replace(string(read(t, filepath.Join(from, f.Name()))))))
	}
}
