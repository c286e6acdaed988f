package layout

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// .ci/long finds the long tests by their first line, and runs them by their names. So a call of longtest.Skip stands in
// that line only, and no other test has the name of a long test.
func TestLongTestsAreFound(t *testing.T) {
	t.Parallel()
	const call = "longtest." + "Skip("
	first := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\tlongtest\.Skip\(t\)$`)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	long, all := make(map[string]bool), make(map[string]int)
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source := string(read(t, "../../"+name))
		found := first.FindAllStringSubmatch(source, -1)
		for _, match := range found {
			long[match[1]] = true
		}
		if n := strings.Count(source, call); n != len(found) {
			t.Errorf("%s: got %d long tests and %d calls of longtest.Skip, want each call in the first line of a test", name, len(found), n)
		}
		for _, match := range declared.FindAllStringSubmatch(source, -1) {
			all[match[1]]++
		}
		return nil
	})
	if err != nil || len(long) == 0 {
		t.Fatalf("got %d long tests, error %v", len(long), err)
	}
	for name := range long {
		if all[name] > 1 {
			t.Errorf("%d tests are named %s, want one", all[name], name)
		}
	}
}

// CONTRIBUTING.md lists targets of the Makefile only, and CI's jobs are targets, too.
func TestTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := "\n" + string(read(t, "../../Makefile"))
	wanted := regexp.MustCompile("(?m)^make ([a-z0-9-]+) ").FindAllStringSubmatch(string(read(t, "../../CONTRIBUTING.md")), -1)
	jobs := regexp.MustCompile(`job: \[(.*)\]`).FindStringSubmatch(string(read(t, "../../.github/workflows/ci.yml")))
	if len(wanted) < 10 || jobs == nil {
		t.Fatalf("got %d targets, and jobs %q", len(wanted), jobs)
	}
	for job := range strings.SplitSeq(jobs[1], ", ") {
		wanted = append(wanted, []string{"", "check-" + job})
	}
	if all := strings.ReplaceAll(jobs[1], ",", ""); !strings.Contains(string(read(t, "../../.ci/run")), "set -- "+all+";") {
		t.Errorf(".ci/run does not run the jobs %s of the workflow", all)
	}
	for _, target := range wanted {
		if !strings.Contains(makefile, "\n"+target[1]+":") {
			t.Errorf("the Makefile has no target %s", target[1])
		}
	}
}
