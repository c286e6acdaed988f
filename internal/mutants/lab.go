// The lab: a copy of the module in which one mutant after the other is tested.

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	outcomeKilled   = "killed by "
	outcomeSurvived = "SURVIVED"
	outcomeInvalid  = "does not compile"

	// stageTimeout ends the tests of a mutant that hangs.
	stageTimeout = 6 * time.Minute
)

type lab struct{ root, copy string }

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// newLab copies the files of the module that git tracks or would add.
func newLab(ctx context.Context, root string) (*lab, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	l := &lab{root, dir}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the file is deleted, and the index still has it
		}
		if err == nil {
			err = l.write(name, data)
		}
		if err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) close() { _ = os.RemoveAll(l.copy) }

func (l *lab) write(name string, data []byte) error {
	path := filepath.Join(l.copy, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// try tests one mutant, and returns its outcome.
func (l *lab) try(ctx context.Context, m mutant) (string, error) {
	source, err := os.ReadFile(filepath.Join(l.root, m.file))
	if err != nil {
		return "", err
	}
	if err := l.write(m.file, []byte(string(source[:m.from])+m.text+string(source[m.to:]))); err != nil {
		return "", err
	}
	script := filepath.Ext(m.file) == ".lua"
	defer func() {
		_ = l.write(m.file, source)
		if script {
			_, _ = l.command(ctx, "generate", "./lua")
		}
	}()
	if script {
		// With the old digest, the tests would notice every change of the script.
		if out, err := l.command(ctx, "generate", "./lua"); err != nil {
			return "", fmt.Errorf("go generate: %w\n%s", err, out)
		}
	} else if _, err := l.command(ctx, "build", "./..."); err != nil {
		return outcomeInvalid, ctx.Err()
	}
	for _, tests := range m.part.tests {
		args := append([]string{"test", "-vet=off", "-failfast", "-timeout", stageTimeout.String()}, tests...)
		out, err := l.command(ctx, args...)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			return outcomeKilled + killer(out), nil
		}
	}
	return outcomeSurvived, nil
}

func (l *lab) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.copy
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

var failed = regexp.MustCompile(`--- FAIL: (\S+)`)

// killer returns the name of the failed test, or the reason why go test failed without one.
func killer(out []byte) string {
	all := failed.FindAllSubmatch(out, -1)
	switch {
	case len(all) > 0:
		return string(all[len(all)-1][1])
	case bytes.Contains(out, []byte("panic: test timed out")):
		return "the timeout"
	case bytes.Contains(out, []byte("panic:")):
		return "a panic"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// readEquivalents reads the mutants that are known to change no answer. Each has a
// line with the mutant, and a line with the reason.
func readEquivalents(root string) (map[string]string, error) {
	file, err := os.Open(filepath.Join(root, "internal/mutants/equivalents.txt"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	known, last := make(map[string]string), ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			known[last] = strings.TrimSpace(line)
		default:
			last = line
		}
	}
	return known, lines.Err()
}
