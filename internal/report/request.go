// The functions that one request runs.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/penstock-go/penstock/"

// A walked file is a file of which a request runs functions.
type walked struct {
	name      string
	functions []string
}

// functionsOfARequest returns the functions that run more often if a handler serves one more request.
func functionsOfARequest() (files []walked, err error) {
	three, err := executed(3)
	if err != nil {
		return nil, err
	}
	four, err := executed(4)
	if err != nil {
		return nil, err
	}
	set, parsed := token.NewFileSet(), make(map[string]*ast.File)
	for block, n := range four {
		if n == three[block] {
			continue
		}
		name, place, _ := strings.Cut(strings.TrimPrefix(block, module), ":")
		if parsed[name] == nil {
			if parsed[name], err = parser.ParseFile(set, name, nil, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			files = append(files, walked{name: name})
		}
		text, _, _ := strings.Cut(place, ".")
		line, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		file := &files[slices.IndexFunc(files, func(f walked) bool { return f.name == name })]
		if function := functionAt(set, parsed[name], line); !slices.Contains(file.functions, function) {
			file.functions = append(file.functions, function)
		}
	}
	slices.SortFunc(files, func(a, b walked) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// executed returns how often each block of this module ran when a handler served n requests.
func executed(n int) (map[string]int, error) {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile")
	run := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkHandler$/^ip$/^draft$", "-benchtime", strconv.Itoa(n)+"x", "-cpu", "1",
		"-covermode", "count", "-coverpkg", "./...", "-coverprofile", profile, "./middleware/internal/tests")
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	blocks := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // file:line.column,line.column statements count
		if len(fields) != 3 {
			continue
		}
		if blocks[fields[0]], err = strconv.Atoi(fields[2]); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// functionAt returns the declared function that contains a line.
func functionAt(set *token.FileSet, f *ast.File, line int) string {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && set.Position(fn.Pos()).Line <= line && line <= set.Position(fn.End()).Line {
			return fn.Name.Name + "@" + strconv.Itoa(set.Position(fn.Pos()).Line)
		}
	}
	return "?"
}
