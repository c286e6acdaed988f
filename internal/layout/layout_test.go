// Who may import whom, which folders there are, how packages are named.

package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	module    = "github.com/penstock-go/penstock"
	step      = "algorithms/internal/step"
	keyaccess = "internal/keyaccess"
	transport = "algorithms/shared/internal/batch"
	circuits  = "algorithms/shared/internal/circuit"
	troubles  = "algorithms/shared/internal/trouble"
	lent      = "internal/lent"
	logwriter = "internal/logwriter"

	breaker    = "github.com/sony/gobreaker"
	chi        = "github.com/go-chi/chi"
	goRedis    = "github.com/redis/go-redis"
	prometheus = "github.com/prometheus"
)

// An importRule says what the non-test files of a folder may import besides the standard library. A folder without a
// rule of its own follows its parent's.
type importRule struct {
	folder  string
	ours    []string // folders of this module, without those below them
	foreign []string // module paths without version; nil: none
	rule    string
}

// parts are the features that the pipeline of package ratelimit calls, and what its sisters share with it.
var parts = func() (all []string) {
	for _, name := range []string{"ban", "comeback", "delayed", "exempt", "findings", "guess", "hashed", "joined", "limits", "problem", "recent", "rpc", "settle", "shares", "topk", "wrapped"} {
		all = append(all, "middleware/internal/"+name)
	}
	return all
}()

var importRules = []importRule{
	{"lua", nil, nil, "lua imports the standard library only"},
	{"headers", nil, nil, "headers imports the standard library only"},
	{"keyfunc", []string{keyaccess}, []string{chi}, "keyfunc imports keyaccess, the standard library and chi only"},
	{keyaccess, nil, nil, "keyaccess imports the standard library only"},
	{lent, nil, nil, "lent imports the standard library only"},
	{logwriter, nil, nil, "logwriter imports the standard library only"},
	{"algorithms", []string{step}, nil, "algorithms imports its steps and the standard library only"},
	{step, nil, nil, "steps import the standard library only"},
	{
		"algorithms/shared", []string{"algorithms", step, transport, circuits, troubles, lent, logwriter}, []string{goRedis},
		"algorithms/shared imports algorithms, its steps, its transport, its circuits, its table of errors, lent, logwriter and go-redis only",
	},
	{
		transport, []string{"algorithms", step, troubles, "lua"}, []string{goRedis},
		"the transport imports algorithms, its steps, the table of errors, lua and go-redis only: no arrow goes up",
	},
	{circuits, []string{troubles}, []string{breaker}, "circuits import the table of errors and gobreaker only"},
	{troubles, []string{"algorithms"}, []string{goRedis}, "the table of errors imports algorithms and go-redis only"},
	{
		"algorithms/limitertest", []string{"algorithms", step}, nil,
		"algorithms/limitertest imports algorithms and its steps only",
	},
	{
		"middleware", slices.Concat([]string{"algorithms", "headers", "keyfunc", keyaccess, lent, logwriter}, parts), nil,
		"middleware imports algorithms, headers, keyfunc, keyaccess, lent, logwriter and its own parts only",
	},
	{
		"middleware/internal", slices.Concat([]string{"algorithms", keyaccess, lent, logwriter}, parts), nil,
		"parts of middleware import algorithms, keyaccess, lent, logwriter and each other only",
	},
	{
		"middleware/internal/limits", []string{"algorithms", "headers", "middleware/internal/settle"}, nil,
		"limits imports algorithms, headers and settle only",
	},
	{
		"middleware/console", slices.Concat([]string{"algorithms", "headers", "keyfunc", keyaccess, logwriter, "middleware", "middleware/overrides"}, parts), nil,
		"middleware/console imports middleware, its parts, overrides, algorithms, headers, keyfunc, keyaccess and logwriter only",
	},
	{
		"middleware/statuspage", slices.Concat([]string{"algorithms", "middleware"}, parts), nil,
		"middleware/statuspage imports middleware, its parts and algorithms only",
	},
	{
		"middleware/overrides", []string{"algorithms", lent, logwriter, "middleware", "middleware/internal/wrapped"}, []string{goRedis},
		"middleware/overrides imports middleware, wrapped, algorithms, lent, logwriter and go-redis only",
	},
	{
		"middleware/quota", []string{"algorithms", "middleware"}, nil,
		"middleware/quota imports middleware and algorithms only",
	},
	{
		"middleware/calls", []string{"keyfunc", "middleware"}, []string{chi},
		"middleware/calls imports middleware, keyfunc and chi only",
	},
	{
		"middleware/client", []string{"algorithms", "headers", logwriter}, nil,
		"middleware/client imports algorithms, headers and logwriter only",
	},
	{
		"middleware/replay", slices.Concat([]string{"algorithms", "keyfunc", keyaccess, lent, "middleware"}, parts), []string{chi},
		"middleware/replay imports middleware, its parts, algorithms, keyfunc, keyaccess, lent and chi only",
	},
	{
		"middleware/prommetrics", slices.Concat([]string{"algorithms", "keyfunc", "middleware", "middleware/client"}, parts), []string{prometheus},
		"middleware/prommetrics imports middleware, its parts, client, keyfunc, algorithms and the Prometheus client only",
	},
	{
		"examples", []string{
			"algorithms", "algorithms/shared", "headers", "keyfunc", "middleware", "middleware/client", "middleware/console",
			"middleware/calls", "middleware/overrides", "middleware/prommetrics", "middleware/quota", "middleware/replay", "middleware/statuspage", "examples/chi-server/playground",
			"examples/chi-server/playground/instruments", "examples/chi-server/playground/redisurl",
		},
		[]string{chi, goRedis, prometheus},
		"examples import what users import: public packages, their own parts, chi, go-redis and the Prometheus client",
	},
}

// Packages below internal support tests, except keyaccess and logwriter. They may import all of ours and any tool, but these stay
// where they belong.
var keptOutOfInternal = []string{chi, prometheus}

var (
	folders  = []string{"algorithms", "examples", "headers", "internal", "keyfunc", "lua", "middleware"}
	badNames = []string{"common", "util", "utils"}
	skipped  = []string{"testdata", "node_modules"} // they have code of others, or code that breaks rules on purpose
)

const (
	ruleInternal = "internal packages do not import chi or Prometheus"
	ruleFolders  = "no top-level folder beside middleware, algorithms, keyfunc, headers, lua, internal and examples"
	ruleNames    = "no package is named common or util: name it after what it provides"
	rulePlace    = "Go files live in one of the top-level folders"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	for _, problem := range check(t, os.DirFS("../..")) {
		t.Error(problem)
	}
}

// TestCheckFinds breaks each rule once and wants it named.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	imports := func(path string) string { return "package p\n\nimport _ " + strconv.Quote(path) + "\n" }
	ruleOf := func(folder string) string { return ruleFor(folder).rule }
	tests := []struct {
		file, content string
		want          string // the rule; empty: all is well
	}{
		{"lua/a.go", imports("embed"), ""},
		{"lua/a.go", imports(module + "/headers"), ruleOf("lua")},
		{"headers/a.go", imports(goRedis + "/v9"), ruleOf("headers")},
		{"keyfunc/a.go", imports(chi + "/v5"), ""},
		{"keyfunc/a.go", imports(chi + "rp"), ruleOf("keyfunc")},
		{"keyfunc/a.go", imports(module + "/algorithms"), ruleOf("keyfunc")},
		{"keyfunc/a.go", imports(module + "/" + keyaccess), ""},
		{"keyfunc/a.go", imports(module + "/internal/redistest"), ruleOf("keyfunc")},
		{keyaccess + "/a.go", imports(module + "/keyfunc"), ruleOf(keyaccess)},
		{"middleware/a.go", imports(module + "/middleware/internal/comeback"), ""},
		{"algorithms/a.go", imports(module + "/" + step), ""},
		{"algorithms/a.go", imports(goRedis + "/v9"), ruleOf("algorithms")},
		{step + "/a.go", imports(module + "/algorithms"), ruleOf(step)},
		{"algorithms/shared/a.go", imports(goRedis + "/v9"), ""},
		{"algorithms/shared/a.go", imports(breaker + "/v2"), ruleOf("algorithms/shared")},
		{circuits + "/a.go", imports(breaker + "/v2"), ""},
		{"algorithms/shared/a.go", imports(module + "/" + transport), ""},
		{"algorithms/shared/a.go", imports(module + "/lua"), ruleOf("algorithms/shared")},
		{transport + "/a.go", imports(module + "/lua"), ""},
		{transport + "/a.go", imports(module + "/algorithms/shared"), ruleOf(transport)},
		{troubles + "/a.go", imports(module + "/" + transport), ruleOf(troubles)},
		{"algorithms/shared/a.go", imports(module + "/headers"), ruleOf("algorithms/shared")},
		{"algorithms/a.go", imports(module + "/middleware"), ruleOf("algorithms")},
		{"algorithms/a.go", imports("golang.org/x/sync/singleflight"), ruleOf("algorithms")},
		{"algorithms/a.go", imports(module + "/middleware"), ruleOf("algorithms")},
		{"algorithms/limitertest/a.go", imports(module + "/algorithms"), ""},
		{"algorithms/limitertest/a.go", imports(goRedis + "/v9"), ruleOf("algorithms/limitertest")},
		{"middleware/overrides/a.go", imports(goRedis + "/v9"), ""},
		{"middleware/overrides/a.go", imports(module + "/middleware"), ""},
		{"middleware/client/a.go", imports(module + "/headers"), ""},
		{"middleware/client/a.go", imports(module + "/middleware"), ruleOf("middleware/client")},
		{"middleware/overrides/a.go", imports(breaker + "/v2"), ruleOf("middleware/overrides")},
		{"middleware/a.go", imports(module + "/middleware/overrides"), ruleOf("middleware")},
		{"middleware/a.go", imports(module + "/keyfunc"), ""},
		{"middleware/a.go", imports(goRedis + "/v9"), ruleOf("middleware")},
		{"middleware/a.go", imports(module + "/lua"), ruleOf("middleware")},
		{"middleware/a.go", imports(module + "/internal/redistest"), ruleOf("middleware")},
		{"middleware/a_test.go", imports(module + "/internal/redistest"), ""},
		{"middleware/a.go", imports(prometheus + "/client_golang/prometheus"), ruleOf("middleware")},
		{"middleware/prommetrics/a.go", imports(prometheus + "/client_golang/prometheus"), ""},
		{"middleware/prommetrics/a.go", imports(goRedis + "/v9"), ruleOf("middleware/prommetrics")},
		{"examples/x/a.go", imports(chi + "/v5/middleware"), ""},
		{"examples/x/a.go", imports(module + "/examples/chi-server/playground"), ""},
		{"examples/x/a.go", imports(module + "/internal/redistest"), ruleOf("examples")},
		{"middleware/a.go", imports(module + "/examples/chi-server/playground"), ruleOf("middleware")},
		{"internal/x/a.go", imports(goRedis + "/v9"), ""},
		{"internal/x/a.go", imports(chi + "/v5"), ruleInternal},
		{"internal/x/testdata/a.go", imports(chi + "/v5"), ""},
		{"lua/a.go", "package util\n", ruleNames},
		{"lua/common/a.go", "package p\n", ruleNames},
		{"a.go", "package p\n", rulePlace},
		{"pkg/a.md", "", ruleFolders},
		{".github/a.md", "", ""},
	}
	for _, tt := range tests {
		problems := check(t, fstest.MapFS{tt.file: {Data: []byte(tt.content)}})
		if tt.want == "" && len(problems) > 0 {
			t.Errorf("%s %.60q: got %q, want no problem", tt.file, tt.content, problems)
		}
		if tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)) {
			t.Errorf("%s %.60q: got %q, want %q", tt.file, tt.content, problems, tt.want)
		}
	}
	nested := fstest.MapFS{
		"internal/lab/go.mod": {Data: []byte("module lab\n")},
		"internal/lab/a.go":   {Data: []byte(imports(chi + "/v5"))},
	}
	if problems := check(t, nested); len(problems) > 0 {
		t.Errorf("nested module: got %q, want no problem", problems)
	}
}

// check returns one line per broken rule in the module at the root of fsys. Nested modules follow no rule, and neither do tests.
func check(t *testing.T, fsys fs.FS) (problems []string) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
		case d.IsDir() && (slices.Contains(skipped, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() && isNested(fsys, name):
			return fs.SkipDir
		case d.IsDir() && !strings.Contains(name, "/") && !slices.Contains(folders, name):
			problems = append(problems, name+": "+ruleFolders)
			return fs.SkipDir
		case d.IsDir():
		case strings.HasSuffix(name, "_test.go"), path.Ext(name) != ".go":
		default:
			found, err := checkFile(fsys, name)
			problems = append(problems, found...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// isNested reports whether a directory is a module of its own.
func isNested(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func checkFile(fsys fs.FS, name string) (problems []string, err error) {
	report := func(rule, detail string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: %s: %s", name, fmt.Sprintf(detail, args...), rule))
	}
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return problems, err
	}
	dir := path.Dir(name)
	for _, packageName := range []string{file.Name.Name, path.Base(dir)} {
		if slices.Contains(badNames, packageName) {
			report(ruleNames, "package %s", packageName)
		}
	}
	if dir == "." {
		report(rulePlace, "in the root of the module")
		return problems, nil
	}
	for _, spec := range file.Imports {
		if imported, rule := importPath(spec), ruleFor(dir); !rule.allows(imported) {
			report(rule.rule, "imports %s", imported)
		}
	}
	return problems, nil
}

func importPath(spec *ast.ImportSpec) string {
	unquoted, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return unquoted
}

// ruleFor returns the rule of dir or of its nearest parent that has one.
func ruleFor(dir string) importRule {
	for ; dir != "."; dir = path.Dir(dir) {
		for _, r := range importRules {
			if r.folder == dir {
				return r
			}
		}
	}
	return importRule{folder: "internal", rule: ruleInternal}
}

func (r importRule) allows(imported string) bool {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case !strings.Contains(first, "."): // the standard library
		return true
	case r.folder == "internal":
		return !slices.ContainsFunc(keptOutOfInternal, within(imported))
	case isOurs:
		return slices.Contains(r.ours, ours)
	default:
		return slices.ContainsFunc(r.foreign, within(imported))
	}
}

// within returns a test of whether imported is the given path or below it.
func within(imported string) func(string) bool {
	return func(prefix string) bool { return imported == prefix || strings.HasPrefix(imported, prefix+"/") }
}
