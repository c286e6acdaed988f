package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The runbook promises what tests hold, and names them.
func TestRunbookNamesTestsThatExist(t *testing.T) {
	runbook, err := os.ReadFile("../../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		tests.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(runbook), -1)
	if len(names) < 10 {
		t.Fatalf("got %d names of tests, want those of the table of failures", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("the runbook names %s, which does not exist", name[1])
		}
	}
}
