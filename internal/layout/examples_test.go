// go doc prints no Examples, so package comments name their files.

package layout

import (
	"regexp"
	"strings"
	"testing"
)

func TestPackageCommentsNameFilesOfExamples(t *testing.T) {
	t.Parallel()
	for folder, least := range map[string]int{"middleware": 1, "algorithms/limitertest": 5} {
		file := folder + "/doc.go"
		if folder == "algorithms/limitertest" {
			file = folder + "/limitertest.go"
		}
		comment, _, _ := strings.Cut(string(read(t, "../../"+file)), "\npackage ")
		names := regexp.MustCompile(`[\w/]*example_\w+_test\.go`).FindAllString(comment, -1)
		for _, name := range names {
			if !exists(t, folder+"/"+name) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if len(names) < least {
			t.Errorf("%s names %d files of examples, want %d", file, len(names), least)
		}
	}
}
