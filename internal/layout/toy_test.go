// An algorithm is one row, one .go, one .lua, its constructor, and its model in
// limitertest. The test adds one to a copy of the module.

package layout

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
)

const toy = "testdata/toy"

// added are the files that a new algorithm may touch.
var added = []string{
	"algorithms/internal/step/table.go", // its row
	"algorithms/internal/step/toy.go",
	"algorithms/limit.go", // its constructor
	"algorithms/limitertest/toy.go",
	"lua/digest.go", // generated
	"lua/toy.lua",
}

func TestAnAlgorithmIsAddedInFewFiles(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	module := t.TempDir()
	copyModule(t, module)
	addToy(t, module)
	run(t, module, "go", "generate", "./lua")
	run(t, module, "go", "vet", "./algorithms/...")
	out := run(t, module, "go", "test", "-v", "-run", "^Test(Memory|Redis)(Conforms|AnswersAsMemory)$", "./algorithms/internal/tests", "./algorithms/shared")
	for _, test := range []string{"TestMemoryConforms", "TestRedisConforms"} {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.Contains(line, "--- PASS: "+test+"/") && strings.Contains(line, "/toy")
		}) {
			t.Errorf("%s: no rule was checked for the toy", test)
		}
	}
	if got := changed(t, module); !slices.Equal(got, added) {
		t.Errorf("a new algorithm changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(added, "\n"))
	}
}

// copyModule copies the parts of the module that decide, their tests, and what these import.
func copyModule(t *testing.T, to string) {
	t.Helper()
	for _, part := range []string{
		"algorithms", "lua", "headers", "keyfunc", "middleware",
		"internal/draw", "internal/keyaccess", "internal/lent", "internal/logwriter", "internal/longtest", "internal/luasource", "internal/redistest",
	} {
		if err := os.CopyFS(filepath.Join(to, part), os.DirFS(filepath.Join("../..", part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		write(t, filepath.Join(to, file), read(t, filepath.Join("../..", file)))
	}
}

// addToy adds an algorithm as CONTRIBUTING.md describes.
func addToy(t *testing.T, module string) {
	t.Helper()
	for _, file := range []string{"algorithms/internal/step/toy.go", "algorithms/limitertest/toy.go", "lua/toy.lua"} {
		write(t, filepath.Join(module, file), read(t, filepath.Join(toy, file)))
	}
	table := filepath.Join(module, "algorithms/internal/step/table.go")
	rows, rest, found := bytes.Cut(read(t, table), []byte("\n)\n\nfunc row("))
	if !found {
		t.Fatal("table.go: the rows do not end where the test looks for their end")
	}
	write(t, table, slices.Concat(rows, []byte("\n"), read(t, toy+"/row.txt"), []byte(")\n\nfunc row("), rest))
	limit := filepath.Join(module, "algorithms/limit.go")
	write(t, limit, slices.Concat(read(t, limit), read(t, toy+"/constructor.txt")))
}

// changed returns the files of a module that differ from ours, in order.
func changed(t *testing.T, module string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		ours, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || !bytes.Equal(ours, read(t, path)) {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func run(t *testing.T, module string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "PENSTOCK_TRACES=5")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, failures(out))
	}
	return string(out)
}

// failures returns the lines of an output that do not say that all is well.
func failures(out []byte) string {
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !passing.MatchString(line) {
			lines = append(lines, line)
		}
	}
	const most = 100
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

var passing = regexp.MustCompile(`^\s*(=== |--- PASS|PASS|ok )`)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
