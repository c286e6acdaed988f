// What the documents name exists.

package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A file in backquotes is one of the repository, or one of the folder that the
// same line names before it.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	t.Parallel()
	quoted := regexp.MustCompile("`([A-Za-z0-9_./*-]+)`")
	for line := range strings.Lines(string(read(t, "../../CLAIMS.md")) + string(read(t, "../../CONTRIBUTING.md"))) {
		folder := ""
		for _, match := range quoted.FindAllStringSubmatch(line, -1) {
			name := match[1]
			if strings.Contains(name, "NAME") || !strings.ContainsAny(name, "/.") && !isFolder(name) {
				continue // a placeholder, or a word of the program
			}
			if isFolder(name) {
				folder = name
				continue
			}
			if ext := path.Ext(name); ext != ".go" && ext != ".lua" {
				continue
			}
			if !exists(t, name) && !exists(t, path.Join(folder, name)) {
				t.Errorf("there is no file %s, also not in %q: %s", name, folder, strings.TrimSpace(line))
			}
		}
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(filepath.Join("../..", name))
	return err == nil && info.IsDir()
}

func exists(t *testing.T, pattern string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../..", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// README's first program is the quickstart, which a test runs.
func TestReadmeShowsTheQuickstart(t *testing.T) {
	t.Parallel()
	_, program, found := strings.Cut(string(read(t, "../../examples/quickstart/main.go")), "\npackage main\n")
	if !found || !strings.Contains(string(read(t, "../../README.md")), "```go\npackage main\n"+program+"```\n") {
		t.Error("README.md does not show examples/quickstart/main.go")
	}
}
