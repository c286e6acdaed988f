package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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
		for _, name := range append(slices.Clone(l.absent), l.shown...) {
			if !slices.ContainsFunc(promises, func(p promise) bool { return p.name == name }) {
				t.Errorf("%s: there is no promise %q", l.name, name)
			}
			if l.quoteOf(name).text == "" {
				t.Errorf("%s (%s): got no quote about %q", l.name, l.store, name)
			}
		}
	}
}

// The page links programs that exist, and every program is linked.
func TestRedCellsHavePrograms(t *testing.T) {
	page, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob("repro/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`repro/[\w-]+/main\.go`).FindAllString(string(page), -1) {
		if !slices.Contains(found, link) {
			t.Errorf("RESULTS.md links %s, which does not exist", link)
		}
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > 30 {
			t.Errorf("%s has %d lines, want at most 30", file, lines)
		}
		if !strings.Contains(string(page), file) {
			t.Errorf("RESULTS.md does not link %s", file)
		}
	}
}

// A program prints the line of its red cell, whatever the numbers are.
func TestProgramsPrintWhatThePageSays(t *testing.T) {
	longtest.Skip(t)
	page, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("repro/([\\w-]+)/main\\.go\\): `(.*)`").FindAllStringSubmatch(string(page), -1)
	if len(lines) == 0 {
		t.Error("RESULTS.md has no program's line")
	}
	digits := regexp.MustCompile(`[0-9]+`)
	for _, m := range lines {
		name, want := m[1], digits.ReplaceAllString(m[2], "#")
		got, err := runProgram(t.Context(), name, true)
		if !confirms(err) {
			t.Errorf("%s does not confirm its cell: %v, %s", name, err, got)
		}
		if got := digits.ReplaceAllString(got, "#"); alike(got) != alike(want) {
			t.Errorf("%s prints\n%s, want\n%s", name, got, want)
		}
	}
}

// alike leaves out the names of days and months, and the parts of durations.
func alike(line string) string {
	return regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b|(#[hms.]+)+`).ReplaceAllString(line, "")
}

func TestProgramsBuild(t *testing.T) {
	programs, err := filepath.Glob("repro/*")
	if err != nil || len(programs) == 0 {
		t.Fatal(programs, err)
	}
	build := []string{"build", "-o", t.TempDir() + "/"}
	for _, name := range programs {
		if strings.HasSuffix(name, "-clock") {
			if _, err := buildSteppable("github.com/penstock-go/penstock/internal/lab/peers/" + filepath.ToSlash(name)); err != nil {
				t.Error(err)
			}
		} else {
			build = append(build, "./"+name)
		}
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A limiter that admits too much is red, and a promise that a library does not make is grey.
func TestVerdicts(t *testing.T) {
	open := func(*trial, quota) (*limiter, error) {
		return &limiter{take: func(string) (answer, error) { return answer{allowed: true, remaining: 3}, nil }}, nil
	}
	lax := library{name: "lax", slug: "lax", store: "memory", open: open, absent: []string{"keys"}}
	for name, want := range map[string]colour{"crowd": red, "remaining": red, "keys": grey} {
		i := slices.IndexFunc(promises, func(p promise) bool { return p.name == name })
		if c := try(lax, promises[i]); c.colour != want {
			t.Errorf("%s: got %s (%s), want %s", name, c.colour, c.what, want)
		}
	}
	cells := []cell{{library: lax, promise: promises[0], verdict: verdict{red, "too much"}}}
	if reproduce(context.Background(), cells); cells[0].colour != "error" {
		t.Errorf("got %s for a red cell without a program, want an error", cells[0].colour)
	}
}
