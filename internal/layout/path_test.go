// How many functions a request runs.

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
)

const maxFunctions = 100 // of an admitted request under one token bucket in a Memory

// TestFunctionsOfARequest counts the functions that run more often if a handler serves one more request. It counts
// declared functions and methods of this module.
func TestFunctionsOfARequest(t *testing.T) {
	longtest.Skip(t)
	three, four := executed(t, 3), executed(t, 4)
	ran := make(map[string][]string) // by file
	files := make(map[string]*ast.File)
	fset := token.NewFileSet()
	for block, n := range four {
		if n == three[block] {
			continue
		}
		file, place, _ := strings.Cut(strings.TrimPrefix(block, module+"/"), ":")
		if files[file] == nil {
			f, err := parser.ParseFile(fset, filepath.Join("../..", file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[file] = f
		}
		text, _, _ := strings.Cut(place, ".")
		line, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if name := functionAt(fset, files[file], line); !slices.Contains(ran[file], name) {
			ran[file] = append(ran[file], name)
		}
	}
	total := 0
	for _, file := range slices.Sorted(maps.Keys(ran)) {
		total += len(ran[file])
		t.Logf("%s: %s", file, strings.Join(ran[file], " "))
	}
	t.Logf("%d functions in %d files", total, len(ran))
	if total > maxFunctions || total < maxFunctions/2 {
		t.Errorf("got %d functions, want at most %d, and at least half of that", total, maxFunctions)
	}
}

// executed returns how often each block of this module ran when a handler served n requests.
func executed(t *testing.T, n int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkHandler$/^ip$/^draft$", "-benchtime", strconv.Itoa(n)+"x", "-cpu", "1",
		"-covermode", "count", "-coverpkg", "./...", "-coverprofile", profile, "./middleware")
	run.Dir = "../.."
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // file:line.column,line.column statements count
		if len(fields) != 3 {
			continue
		}
		if blocks[fields[0]], err = strconv.Atoi(fields[2]); err != nil {
			t.Fatal(err)
		}
	}
	return blocks
}

// functionAt returns the declared function that contains a line.
func functionAt(fset *token.FileSet, f *ast.File, line int) string {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fset.Position(fn.Pos()).Line <= line && line <= fset.Position(fn.End()).Line {
			return fn.Name.Name + "@" + strconv.Itoa(fset.Position(fn.Pos()).Line)
		}
	}
	return "?"
}
