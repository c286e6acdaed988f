// Which packages are promised. CHANGELOG.md lists them; the others say that they may change.

package layout

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// promised are the packages whose public names stay within a major version.
var promised = []string{"algorithms", "algorithms/shared", "middleware", "keyfunc", "headers", "middleware/prommetrics"}

func TestOtherPackagesMayChange(t *testing.T) {
	t.Parallel()
	found := 0
	for _, dir := range []string{"../..", "../../middleware/otelmetrics"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", "./...")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			name, doc, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), module+"/"), "\t")
			if strings.HasPrefix(name, "internal/") || strings.Contains(name, "/internal/") || strings.HasPrefix(name, "examples/") {
				continue
			}
			found++
			if says := strings.Contains(doc, ", which a minor version may change, "); says == slices.Contains(promised, name) {
				t.Errorf("%s begins with %q: a promised package says nothing of changes, and another one says that a minor version may change it", name, doc)
			}
		}
	}
	if found < len(promised)+10 {
		t.Errorf("got %d packages", found)
	}
}
