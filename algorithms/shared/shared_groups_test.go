// The groups of files: a file's name up to the first underscore or dot is its group.

package shared

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func groupOf(file string) string {
	name := filepath.Base(file)
	return name[:strings.IndexAny(name, "_.")]
}

// receiverType returns the name of the type that has a method, "" for a function.
func receiverType(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr: // a type parameter
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// methodsElsewhere returns the methods of sources, by file name, whose type is declared
// in a file of another group.
func methodsElsewhere(t *testing.T, sources map[string]string) (wrong []string) {
	t.Helper()
	files, declared := token.NewFileSet(), make(map[string]string) // the group of each type
	parsed := make(map[string]*ast.File)
	for name, source := range sources {
		f, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = f
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				declared[spec.Name.Name] = groupOf(name)
			}
			return true
		})
	}
	for name, f := range parsed {
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			if owner := receiverType(method); declared[owner] != groupOf(name) {
				wrong = append(wrong, name+": "+owner+"."+method.Name.Name+" belongs to group "+declared[owner])
			}
		}
	}
	return wrong
}

// No file has methods of a type that another group of files declares.
func TestGroupsOwnTheirTypes(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources, groups := make(map[string]string), make(map[string]bool)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[name], groups[groupOf(name)] = string(source), true
	}
	for _, group := range []string{"shared", "views", "fallback", "redis"} {
		if !groups[group] {
			t.Errorf("no file belongs to group %s", group)
		}
	}
	for _, wrong := range methodsElsewhere(t, sources) {
		t.Error(wrong)
	}
	planted := methodsElsewhere(t, map[string]string{
		"a.go": "package p\ntype t[K any] struct{}\nfunc (t[K]) own() {}", "a_b.go": "package p\nfunc (*t[K]) near() {}",
		"b.go": "package p\nfunc (*t[K]) far() {}",
	})
	if len(planted) != 1 || planted[0] != "b.go: t.far belongs to group a" {
		t.Errorf("got %q, want the method of another group", planted)
	}
}
