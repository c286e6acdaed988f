// The copy of the product in which one mutant after the other is tested.

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

const (
	outcomeKilled     = "killed by"
	outcomeSurvived   = "SURVIVED"
	outcomeInvalid    = "does not compile"
	outcomeEquivalent = "equivalent:"

	// stageTimeout ends the tests of a mutant that hangs.
	stageTimeout = 6 * time.Minute
)

type duplicate struct{ root, dir string }

// newDuplicate copies the files of the product that git tracks or would add. The copy ends with o.
func newDuplicate(ctx context.Context, o *nottest.Owner) *duplicate {
	root := nottest.Must(command.Product(ctx))
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		o.Fatalf("git ls-files: %w", err)
	}
	d := &duplicate{root, o.TempDir()}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the file is deleted, and the index still has it
		}
		nottest.Check(err)
		d.write(name, data)
	}
	return d
}

func (d *duplicate) write(name string, data []byte) {
	path := filepath.Join(d.dir, name)
	nottest.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	nottest.Check(os.WriteFile(path, data, 0o644))
}

// try tests one mutant, and returns its outcome, and the test that killed it.
func (d *duplicate) try(ctx context.Context, m mutant) (outcome, killer string, err error) {
	source := nottest.Must(os.ReadFile(filepath.Join(d.root, m.file)))
	d.write(m.file, []byte(string(source[:m.from])+m.text+string(source[m.to:])))
	script := filepath.Ext(m.file) == ".lua"
	defer func() {
		d.write(m.file, source)
		if script {
			_, _ = d.command(ctx, "generate", "./lua")
		}
	}()
	if script {
		// With the old digest, the tests would notice every change of the script.
		if out, err := d.command(ctx, "generate", "./lua"); err != nil {
			return "", "", fmt.Errorf("go generate: %w\n%s", err, out)
		}
	} else if _, err := d.command(ctx, "build", "./..."); err != nil {
		return outcomeInvalid, "", ctx.Err()
	}
	for _, tests := range m.part.tests {
		args := append([]string{"test", "-vet=off", "-failfast", "-timeout", stageTimeout.String()}, tests...)
		out, err := d.command(ctx, args...)
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		if err != nil {
			return outcomeKilled, nameOf(out), nil
		}
	}
	return outcomeSurvived, "", nil
}

func (d *duplicate) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = d.dir
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

//go:embed equivalents.txt
var equivalents string

var failed = regexp.MustCompile(`--- FAIL: (\S+)`)

// nameOf returns the name of the failed test, or the reason why go test failed without one.
func nameOf(out []byte) string {
	all := failed.FindAllSubmatch(out, -1)
	switch {
	case len(all) > 0:
		name := string(all[len(all)-1][1])
		if promise := broken.FindSubmatch(out); promise != nil {
			name += ": " + string(promise[1])
		}
		return name
	case bytes.Contains(out, []byte("panic:")): // also after the timeout
		return "a panic"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// readEquivalents reads the mutants that are known to change no answer. Each has a
// line with the mutant, and a line with the reason.
func readEquivalents() map[string]string {
	known, last := make(map[string]string), ""
	for line := range strings.SplitSeq(equivalents, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			known[last] = strings.TrimSpace(line)
		default:
			last = line
		}
	}
	return known
}
