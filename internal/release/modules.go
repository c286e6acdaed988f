package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// buildWithoutReplace builds the released modules that need another one, as an adopter gets them: without replace, with the
// versions that their go.mod names. All released modules have one version.
func buildWithoutReplace(checkout string) (line string, err error) {
	version, err := nextVersion(checkout)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newProxy(checkout, dir, version)
	if err != nil {
		return "", err
	}
	for _, folder := range released[1:] {
		built := filepath.Join(dir, "built", folder)
		if err := p.unzip(folder, version, built); err != nil {
			return "", err
		}
		for _, args := range [][]string{
			{"mod", "edit", "-dropreplace=" + root},
			{"mod", "tidy"},
			{"vet", "./..."},
		} {
			if _, err := output(built, p.env, "go", args...); err != nil {
				return "", fmt.Errorf("%s: %w", folder, err)
			}
		}
	}
	return strings.Join(released[1:], ", ") + " builds without replace as " + version, nil
}

// nextVersion returns the version that the released modules require of the root. It fails if they differ, or if
// CHANGELOG.md does not have it.
func nextVersion(checkout string) (string, error) {
	required, version := regexp.MustCompile(`(?m)^(?:require|\t)\s*`+regexp.QuoteMeta(root)+` (v\S+)`), ""
	for _, folder := range released[1:] {
		goMod, err := os.ReadFile(filepath.Join(checkout, folder, "go.mod"))
		if err != nil {
			return "", err
		}
		match := required.FindStringSubmatch(string(goMod))
		if match == nil || version != "" && match[1] != version {
			return "", fmt.Errorf("%s/go.mod requires %q of %s, want one version in all modules", folder, match, root)
		}
		version = match[1]
	}
	changes, err := os.ReadFile(filepath.Join(checkout, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(changes), "\n## ["+strings.TrimPrefix(version, "v")+"]") {
		return "", fmt.Errorf("go.mod files require %s, and CHANGELOG.md has no section of it", version)
	}
	return version, nil
}
