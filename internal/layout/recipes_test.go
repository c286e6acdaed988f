// RECIPES.md shows the programs of examples/recipes.

package layout

import (
	"path/filepath"
	"strings"
	"testing"
)

// Each program stands there as a whole, so that it compiles where a reader pastes it.
func TestRecipesShowThePrograms(t *testing.T) {
	t.Parallel()
	recipes := string(read(t, "../../RECIPES.md"))
	files, err := filepath.Glob("../../examples/recipes/*/*.go")
	if err != nil || len(files) < 9 {
		t.Fatalf("got files %q, error %v", files, err)
	}
	shown := 0
	for _, file := range files {
		if base := filepath.Base(file); strings.HasSuffix(base, "_test.go") && base != "service_test.go" {
			continue
		}
		shown++
		if !strings.Contains(recipes, "```go\n"+string(read(t, file))+"```\n") {
			t.Errorf("RECIPES.md does not show %s", file)
		}
	}
	if deployment := read(t, "../../examples/recipes/kubernetes/deployment.yaml"); !strings.Contains(recipes, "```yaml\n"+string(deployment)+"```\n") {
		t.Error("RECIPES.md does not show examples/recipes/kubernetes/deployment.yaml")
	}
	if blocks := strings.Count(recipes[:strings.Index(recipes, "\n## Stacks\n")], "```go\n"); blocks != shown {
		t.Errorf("RECIPES.md has %d programs before its stacks, want the %d files of examples/recipes", blocks, shown)
	}
}
