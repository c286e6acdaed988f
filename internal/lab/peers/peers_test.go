package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/lab/peers/repro"
	"github.com/penstock-go/penstock/internal/longtest"
)

// A quote that the documentation does not have would be unfair.
func TestQuotesAreInTheDocumentation(t *testing.T) {
	for _, l := range libraries {
		dir := "../../.."
		if l.module != "" {
			out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", l.module).Output()
			if err != nil {
				t.Fatal(err)
			}
			if dir = strings.TrimSpace(string(out)); dir == "" {
				t.Fatalf("%s is not in the module cache", l.module)
			}
		}
		for name, q := range l.says {
			text, err := os.ReadFile(filepath.Join(dir, q.file))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(plain(string(text)), plain(q.text)) {
				t.Errorf("%s, %s: %s does not say %q", l.name, name, q.file, q.text)
			}
		}
	}
}

// plain removes line breaks and the marks of comments.
func plain(text string) string {
	text = regexp.MustCompile(`(?m)^\s*//+`).ReplaceAllString(text, " ")
	return strings.Join(strings.Fields(text), " ")
}

func TestEveryAbsentPromiseIsQuoted(t *testing.T) {
	for _, l := range libraries {
		for _, name := range slices.Concat(l.absent, l.shown, slices.Collect(maps.Keys(l.says))) {
			if name != "" && !slices.ContainsFunc(promises, func(p promise) bool { return p.name == name }) {
				t.Errorf("%s: there is no promise %q", l.name, name)
			}
		}
		for _, p := range promises {
			if !l.makes(p.name) && l.quoteOf(p.name).text == "" {
				t.Errorf("%s (%s): got no quote about %q", l.name, l.store, p.name)
			}
		}
	}
}

// reproductions are what the page says of red cells: file, name and line.
func reproductions(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, m := range regexp.MustCompile("\\[Reproduction\\]\\((.*?)\\) `(.*?)`: `(.*)`").FindAllStringSubmatch(string(page), -1) {
		all[m[2]] = m
	}
	return all
}

// Each red cell of the page has a function of at most 30 lines, and each function a red cell.
func TestRedCellsHaveFunctions(t *testing.T) {
	shown := slices.Sorted(maps.Keys(reproductions(t)))
	if got := slices.Sorted(repro.All()); !slices.Equal(got, shown) {
		t.Errorf("got functions for %q, and RESULTS.md has %q", got, shown)
	}
	for _, m := range reproductions(t) {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, m[1], nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && files.Position(f.End()).Line-files.Position(f.Pos()).Line >= 30 {
				t.Errorf("%s: %s has more than 30 lines", m[1], f.Name)
			}
		}
	}
}

// A function says the same as in the page, whatever the numbers are.
func TestFunctionsSayWhatThePageSays(t *testing.T) {
	longtest.Skip(t)
	digits := regexp.MustCompile(`[0-9]+`)
	for name, m := range reproductions(t) {
		out, err := child(t.Context(), "repro", name)
		got := strings.TrimSpace(string(out))
		if !confirms(err) {
			t.Errorf("%s does not confirm its cell: %v, %s", name, err, got)
		}
		if alike(digits.ReplaceAllString(got, "#")) != alike(digits.ReplaceAllString(m[3], "#")) {
			t.Errorf("%s says\n%s, want\n%s", name, got, m[3])
		}
	}
}

// alike leaves out the names of days and months, and the parts of durations.
func alike(line string) string {
	return regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b|(#[hms.]+)+`).ReplaceAllString(line, "")
}

// Trials that need a process of their own get a clock that can be stepped.
func TestSteppableProgramBuilds(t *testing.T) {
	out, err := child(t.Context(), "repro", "fiber-clock")
	if !confirms(err) {
		t.Errorf("got %v, %s", err, out)
	}
}

// A limiter that admits too much is red, and a promise that a library does not make is grey.
func TestVerdicts(t *testing.T) {
	open := func(*trial, quota) take {
		return func(string, int) (answer, error) { return answer{allowed: true, remaining: 3}, nil }
	}
	lax := library{name: "lax", slug: "lax", store: "memory", open: open, absent: []string{"keys"}}
	for name, want := range map[string]colour{"crowd": red, "remaining": red, "keys": grey} {
		i := slices.IndexFunc(promises, func(p promise) bool { return p.name == name })
		c := cell{library: lax, promise: promises[i]}
		if c.try(t.Context()); c.Colour != want {
			t.Errorf("%s: got %s (%s), want %s", name, c.Colour, c.What, want)
		}
	}
	c := cell{library: lax, promise: promises[0], verdict: verdict{red, "too much"}}
	if c.reproduce(t.Context()); c.Colour != failed {
		t.Errorf("got %s for a red cell without a function, want an error", c.Colour)
	}
}
