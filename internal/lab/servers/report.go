package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A report has the results of the tests on one server.
type report struct {
	server, version string
	passed          int
	failed, flaky   []testName        // flaky: passed when it ran again by itself
	cannot          map[string]string // tests that the server cannot run, and why
}

// A testName is a test and the folder of its package.
type testName struct{ path, test string }

func (t testName) String() string {
	return t.path + " " + t.test
}

// An event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// add reads the output of go test -json. It counts only the innermost of nested tests. A package that fails without a
// failed test, because it does not build or because it panics, counts as a failed test without a name.
func (r *report) add(events io.Reader) {
	if r.cannot == nil {
		r.cannot = make(map[string]string)
	}
	packages := make(map[string]bool) // with a failed test
	above := make(map[testName]bool)  // tests with subtests
	blamed := make(map[testName]bool) // tests with a failed subtest
	for lines := json.NewDecoder(events); ; {
		var e event
		if err := lines.Decode(&e); err != nil {
			return
		}
		t := testName{strings.TrimPrefix(e.Package, "github.com/penstock-go/penstock/"), e.Test}
		switch e.Action {
		case "run":
			t.eachAbove(func(outer testName) { above[outer] = true })
		case "output":
			if _, why, found := strings.Cut(e.Output, redistest.Cannot); found {
				r.cannot[t.String()] = strings.TrimSpace(why)
			}
		case "pass":
			if e.Test != "" && !above[t] {
				r.passed++
			}
		case "fail":
			if blamed[t] || e.Test == "" && packages[e.Package] {
				continue
			}
			packages[e.Package] = true
			t.eachAbove(func(outer testName) { blamed[outer] = true })
			r.failed = append(r.failed, t)
		}
	}
}

// eachAbove calls f for each test that has t as a subtest.
func (t testName) eachAbove(f func(testName)) {
	for i := strings.LastIndexByte(t.test, '/'); i > 0; i = strings.LastIndexByte(t.test, '/') {
		t.test = t.test[:i]
		f(t)
	}
}

// recheck calls passes for each failed test, and moves the tests that pass now to flaky.
func (r *report) recheck(passes func(testName) bool) {
	r.failed = slices.DeleteFunc(r.failed, func(t testName) bool {
		passed := t.test != "" && passes(t)
		if passed {
			r.flaky = append(r.flaky, t)
		}
		return passed
	})
}

// result is the server's cell in the table.
func (r *report) result() string {
	if len(r.failed) == 0 {
		return "green"
	}
	return fmt.Sprintf("**%d fail**", len(r.failed))
}

// table returns the document: a table, and the names below it.
func table(reports []report, now time.Time) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# Servers\n\n`make test-servers` wrote this page on %s. It ran the tests of `%s`.\n\n", now.UTC().Format("2006-01-02"),
		strings.Join(packages, "`, `"))
	s.WriteString("| Server | Version | Result | Passed | Passed when run again alone | Cannot run |\n|---|---|---|---|---|---|\n")
	for _, r := range reports {
		fmt.Fprintf(&s, "| %s | %s | %s | %d | %d | %d |\n", r.server, r.version, r.result(), r.passed, len(r.flaky), len(r.cannot))
	}
	list(&s, "Tests that a server cannot run", reports, func(r report) (lines []string) {
		for _, test := range slices.Sorted(maps.Keys(r.cannot)) {
			lines = append(lines, test+": "+r.cannot[test])
		}
		return lines
	})
	list(&s, "Tests that fail", reports, func(r report) []string { return names(r.failed) })
	list(&s, "Tests that failed together with others and passed alone", reports, func(r report) []string { return names(r.flaky) })
	return s.String()
}

func list(s *strings.Builder, title string, reports []report, of func(report) []string) {
	fmt.Fprintf(s, "\n## %s\n\n", title)
	none := true
	for _, r := range reports {
		for _, line := range of(r) {
			fmt.Fprintf(s, "- %s %s: %s\n", r.server, r.version, line)
			none = false
		}
	}
	if none {
		s.WriteString("None.\n")
	}
}

func names(tests []testName) (names []string) {
	slices.SortFunc(tests, func(a, b testName) int { return cmp.Compare(a.String(), b.String()) })
	for _, t := range tests {
		names = append(names, t.String())
	}
	return names
}
