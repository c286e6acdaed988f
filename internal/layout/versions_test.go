// The versions of Go that the documents name.

package layout

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGoVersions: CONTRIBUTING.md's table has each module with the version of its go.mod, and README names the version of the root.
func TestGoVersions(t *testing.T) {
	t.Parallel()
	named := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9./-]+)` \\| (1\\.\\d+) \\| ").FindAllStringSubmatch(string(read(t, "../../CONTRIBUTING.md")), -1) {
		named[row[1]] = row[2]
	}
	directive := regexp.MustCompile(`(?m)^go (1\.\d+)\.\d+$`)
	for _, dir := range modules(t) {
		version := directive.FindStringSubmatch(string(read(t, filepath.Join("../..", dir, "go.mod"))))
		if version == nil || named[dir] != version[1] {
			t.Errorf("%s/go.mod: got %q, and CONTRIBUTING.md says %q", dir, version, named[dir])
		}
		delete(named, dir)
	}
	for dir := range named {
		t.Errorf("CONTRIBUTING.md has the module %s, which does not exist", dir)
	}
	version := directive.FindStringSubmatch(string(read(t, "../../go.mod")))[1]
	if readme := string(read(t, "../../README.md")); !strings.Contains(readme, "# Go "+version+" or later\n") {
		t.Errorf("README.md does not say that penstock needs Go %s", version)
	}
}

// TestDependabotKnowsModules: .github/dependabot.yml has the folder of each module.
func TestDependabotKnowsModules(t *testing.T) {
	t.Parallel()
	config := string(read(t, "../../.github/dependabot.yml"))
	for _, dir := range modules(t) {
		if !strings.Contains(config, "- "+path.Join("/", dir)+"\n") && !strings.Contains(config, "directory: "+path.Join("/", dir)+"\n") {
			t.Errorf(".github/dependabot.yml has no updates for the module %s", dir)
		}
	}
}

// modules returns the folders of all modules, with slashes.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && d.IsDir() && (slices.Contains(skipped, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.Name() == "go.mod":
			dirs = append(dirs, path.Dir(name))
		}
		return nil
	})
	if err != nil || len(dirs) < 2 {
		t.Fatalf("got the modules %q, error %v", dirs, err)
	}
	return dirs
}
