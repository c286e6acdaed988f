package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of outages promises what tests hold, and names them.
func TestOutagesNamesTestsThatExist(t *testing.T) {
	outages, err := os.ReadFile("../../algorithms/shared/OUTAGES.md")
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
	names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(outages), -1)
	if len(names) < 10 {
		t.Fatalf("got %d names of tests, want more", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("OUTAGES.md names %s, which does not exist", name[1])
		}
	}
}
