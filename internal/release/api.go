package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// compareAPI compares the public names with those of the last tag. A break needs an entry under Changed or Removed in the
// first section of CHANGELOG.md.
func compareAPI(checkout string) (string, error) {
	tag, err := output(checkout, nil, "git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
	if err != nil {
		return "there is no tag yet, so there is nothing to compare", nil
	}
	tag = strings.TrimSpace(tag)
	breaks, err := incompatible(checkout, tag)
	if err != nil || breaks == "" {
		return "compatible with " + tag, err
	}
	changes, err := os.ReadFile(filepath.Join(checkout, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if !announced(string(changes)) {
		return "", fmt.Errorf("breaks since %s, and CHANGELOG.md has no entry under Changed or Removed:\n%s", tag, breaks)
	}
	return "breaks since " + tag + ", which CHANGELOG.md announces:\n" + breaks, nil
}

// announced reports whether the first section of a changelog has changes or removals.
func announced(changelog string) bool {
	sections := regexp.MustCompile(`(?m)^## `).Split(changelog, 3)
	return len(sections) > 1 && regexp.MustCompile(`(?m)^### (Changed|Removed)$`).MatchString(sections[1])
}

// incompatible returns the incompatible changes since a tag.
func incompatible(checkout, tag string) (changes string, err error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before := filepath.Join(dir, "before")
	if _, err := output(checkout, nil, "git", "worktree", "add", "--detach", before, tag); err != nil {
		return "", err
	}
	defer func() {
		_, removeErr := output(checkout, nil, "git", "worktree", "remove", "--force", before)
		err = errors.Join(err, removeErr)
	}()
	module, err := output(checkout, nil, "go", "list", "-m")
	if err != nil {
		return "", err
	}
	module = strings.TrimSpace(module)
	for name, source := range map[string]string{"old": before, "new": checkout} {
		if _, err := apidiff(source, "-m", "-w", filepath.Join(dir, name), module); err != nil {
			return "", err
		}
	}
	changes, err = apidiff(checkout, "-m", "-incompatible", filepath.Join(dir, "old"), filepath.Join(dir, "new"))
	return strings.TrimSpace(changes), err
}

// apidiff runs apidiff in the folder of a module, with the version that this module's go.mod names.
func apidiff(dir string, args ...string) (string, error) {
	modfile, err := filepath.Abs("go.mod")
	if err != nil {
		return "", err
	}
	return output(dir, nil, "go", append([]string{"tool", "-modfile=" + modfile, "apidiff"}, args...)...)
}
