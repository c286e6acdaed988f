// How many names users meet: a name has to earn its place.

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// names are the most exported types, functions, methods, constants and variables
// that a package may have.
var names = map[string]int{
	"algorithms":        75,
	"algorithms/lease":  7,
	"algorithms/shared": 25,
	"headers":           21,
	"keyfunc":           24,
	"middleware":        66,
	"middleware/client": 20,
	"middleware/replay": 3,
}

// seam are names whose results are internal types. They are for this module's
// limiters, and their documentation says so.
var seam = []string{"Check.Item", "Limit.Step", "LimitOf", "Receipt.Step", "ReceiptOf"}

func TestPackagesHaveFewNames(t *testing.T) {
	t.Parallel()
	for folder, most := range names {
		exported := exportedNames(t, filepath.Join("../..", folder))
		t.Logf("%s has %d names", folder, len(exported))
		if len(exported) > most {
			t.Errorf("%s has %d exported names, want at most %d:\n%s", folder, len(exported), most, strings.Join(exported, " "))
		}
	}
}

// exportedNames returns the exported names of the package in a folder, methods
// with the names of their types.
func exportedNames(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got %d files, %v", folder, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			names = append(names, declared(d)...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		for part := range strings.SplitSeq(name, ".") {
			if !ast.IsExported(part) {
				return true
			}
		}
		return slices.Contains(seam, name)
	})
}

// declared returns the names of a declaration.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{receiver(d) + d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				if i, ok := s.Type.(*ast.InterfaceType); ok {
					for _, method := range i.Methods.List {
						for _, name := range method.Names {
							names = append(names, s.Name.Name+"."+name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method and a dot; "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	expr := d.Recv.List[0].Type
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	return expr.(*ast.Ident).Name + "."
}

// Whoever limits in memory compiles nothing but the standard library and us.
func TestAlgorithmsNeedTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./algorithms")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.FieldsSeq(string(out)) {
		if !within(imported)(module) {
			t.Errorf("algorithms needs %s", imported)
		}
	}
}
